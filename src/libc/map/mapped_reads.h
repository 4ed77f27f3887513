// The mmap family on file mappings that are only read, which the kernel serves
// (page_cache/mappings.h). They stand outside of managed space; each function says
// whether the range is one of them, has a part of one, and has been dealt with.
//
// A call of the program's that unmaps, replaces, moves or writes to such a range takes it out of what is evicted first.
// Threads: any. Errors: libc's.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>

#include "libc/managed.h"

namespace spw::libc {

// Whether a shared mapping that is only read can change by calls of this process on the file, which only the kernel's
// own pages show at once.
bool has_to_be_the_kernels(int flags, int fd);

// nullptr: not possible here, or `protection` asks for more than reading.
void* map_for_reading(const Context& c, void* address, size_t bytes, int protection, int flags, int fd,
                      off_t offset);
// Before the kernel is given a call that changes what is mapped there. Whether there was a part of one.
bool release_reads(const void* address, size_t bytes);
// Nothing: the range has no part of such a mapping.
std::optional<void*> remap_reads(void* address, size_t old_bytes, size_t new_bytes, int flags,
                                 void* new_address);
std::optional<int> protect_reads(void* address, size_t bytes, int protection);
std::optional<int> advise_reads(void* address, size_t bytes, int advice);

}  // namespace spw::libc
