// Buffered descriptors, as the interposed functions see them. files/file_calls.h says what they do.
//
// Once use_file_calls() has been called, files_or_real() has functions that ask here first (buffered.cc), so that every
// interposed function does, whatever it does about managed memory. The runtime's own calls (InRuntime) go to libc.
// Results: as the function's, or a negative errno, or kNotBuffered: the descriptor is the kernel's.
// Threads: any. Lifetime: the process.
#pragma once

#include <sys/mman.h>
#include <sys/uio.h>

#include "files/file_calls.h"

namespace spw::libc {

using files::FileCalls;
using files::kNotBuffered;
using files::kOwnPlace;

// Once. Never taken back, but in a forked child, whose descriptors are the kernel's.
void use_file_calls(FileCalls* calls);
// nullptr: none, or this thread is in the runtime.
FileCalls* file_calls();
// The same for calls that change which descriptors there are: nullptr also
// in a child of vfork(), which has descriptors of its own but our memory.
FileCalls* descriptor_calls();
// Before a mapping. What is mapped of a file and what is read and written are the same bytes, which the kernel sees to:
// true, and the mapping is to be its own, for a file that is buffered or could be.
inline bool is_the_kernels_to_map(int flags, int fd) {
  FileCalls* calls = (flags & MAP_ANONYMOUS) != 0 ? nullptr : descriptor_calls();
  if (calls == nullptr || !calls->is_wanted(fd)) return false;
  calls->give_back(fd);
  return true;
}

}  // namespace spw::libc
