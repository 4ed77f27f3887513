// Ranges that a program reserves without access, to commit pieces of them later: what garbage-collected languages and
// arena allocators do. Committed by mprotect or MAP_FIXED, they are as large as any heap, so they are managed as if
// they had access from the start. Not those that would not work as managed memory:
//
//   near code                   a code range, which has to be within reach of jumps from the program's code
//   large, at a high address    a collector keeps marks in address bits, and takes no other place (ZGC)
//   small, without a hint       a ring buffer, whose two halves will be one piece of shared memory
//
// Threads: any. Costs one look at the loaded objects for a reservation with a hint.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spw::libc {

// `hint`: the address that was asked for, or nullptr. `memory_bytes`: the cap.
bool is_reservation_managed(const void* hint, size_t bytes, uint64_t memory_bytes);

}  // namespace spw::libc
