// Finding a byte sequence in memory of which any part may be managed.
//
// Threads: any. Limits: the sequence is copied to native memory, with a table of four bytes for each of its bytes; one
// that there is no memory for (or of 4 GiB and more) counts as not found.
#pragma once

#include <cstddef>

namespace spw::libc {

// The first `what` in [in, in + in_bytes), or nullptr.
void* find_sequence(const void* in, size_t in_bytes, const void* what, size_t what_bytes);
// The first `what` (of what_bytes bytes, none of them 0) in the string `in`, or nullptr.
char* find_in_string(const char* in, const void* what, size_t what_bytes);

}  // namespace spw::libc
