// The mmap family on managed memory.
//
// mmap from instrumented code is managed when it is at least the threshold and is
//   anonymous: private, readable and writable, not executable, not a stack, not locked, anywhere it likes
//   a file:    regular, not executable, anywhere it likes; shared and writable, shared and read-only, or private
// Also what is only reserved, without access or with other rights (reservations.h). Everything else is the kernel's; a
// file that is only read may be, too, within the cap (mapped_reads.h). While all memory fits, the mapped engine has the
// kernel serve writable shared mappings at their managed addresses (kernel_files.h there); else a managed file mapping
// is a copy in the cache:
// what is stored to a shared one reaches the file by msync, munmap, exec and exit; what others write to the file after
// its block was read is not seen. So a writable shared mapping of a file that others have open, or that lives in
// memory, is the kernel's. Two writable shared mappings of one part of a file would not see each other either, so the
// second is refused (ENODEV).
// MAP_FIXED at a managed address makes anonymous memory there, whatever of it is mapped, with a copy of the file if
// there is one; a shared mapping is refused (EINVAL), and so is one over a mapped file or an object of malloc (ENOMEM).
// mremap() moves contents, rights and marks (marks.h). Which errors there are, and what is not as with the kernel, the
// table in spillway-regions(7) says.
// Threads: any. Errors: libc's.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "libc/managed.h"

namespace spw::libc {

void* map(void* address, size_t bytes, int protection, int flags, int fd, off_t offset);
int unmap(void* address, size_t bytes);
// A call of the kernel's is about to unmap or replace what is in the range, which is not managed: nothing that is known
// of it, as of a mapping that is only read, holds any more.
void forget_replaced(const void* address, size_t bytes);
void* remap(void* address, size_t old_bytes, size_t new_bytes, int flags, void* new_address);
int sync_mapping(void* address, size_t bytes, int flags);
// What was stored to shared mappings of files reaches the kernel, which has it for whoever comes next: this process is
// about to be another program, to end, or to have another program run. False: not all of it, which has been said.
// Async-signal-safe where none is mapped.
bool flush_mapped_files();
// At quick_exit(), which ends with kExitFailure where that fails, since it cannot be known with what else.
void flush_at_quick_exit();

// Memory at [begin, end) of managed space, which reads as zeros and has the usual rights, in place of what is there.
// False, and nothing has changed: files or objects of malloc are there.
bool make_anonymous(const Context& c, uintptr_t begin, uintptr_t end);

// Around a fork nothing of what stands in this folder changes.
void lock_mappings_for_fork();
void unlock_mappings_after_fork();
// In a child that has its parent's memory, when it can be used.
void mappings_in_child();

}  // namespace spw::libc

extern "C" {
void* __spw_mmap_v1(void* address, size_t bytes, int protection, int flags, int fd, off_t offset);
void* __spw_mmap64_v1(void* address, size_t bytes, int protection, int flags, int fd, off_t offset);
}
