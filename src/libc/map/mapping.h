// The mmap family on managed memory.
//
// mmap from instrumented code is managed when it is at least the threshold and is
//   anonymous: private, readable and writable, not executable, not a stack, not locked, anywhere it likes
//   a file:    regular, not executable, anywhere it likes; shared and writable, shared and read-only, or private
// Everything else is the kernel's; a file that is only read may be, too, within the cap (mapped_reads.h). A managed
// file mapping is a copy in the cache: what is stored to a shared one reaches the file by msync, munmap and exit; what
// others write to the file after its block was read is not seen. Two writable shared mappings of one part of a file
// would not see each other either, so the second is refused (ENODEV). MAP_FIXED onto managed anonymous memory makes it
// anew (zero); with a file it is refused (EINVAL). Protection is not enforced, except that stores to a mapping of a
// read-only file are reported as I/O errors.
// Threads: any. Errors: libc's.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <cstddef>

namespace spw::libc {

void* map(void* address, size_t bytes, int protection, int flags, int fd, off_t offset);
int unmap(void* address, size_t bytes);
void* remap(void* address, size_t old_bytes, size_t new_bytes, int flags, void* new_address);
int sync_mapping(void* address, size_t bytes, int flags);
int advise_mapping(void* address, size_t bytes, int advice);
int protect_mapping(void* address, size_t bytes, int protection);

}  // namespace spw::libc

extern "C" {
void* __spw_mmap_v1(void* address, size_t bytes, int protection, int flags, int fd, off_t offset);
void* __spw_mmap64_v1(void* address, size_t bytes, int protection, int flags, int fd, off_t offset);
}
