// What changes a buffered file beside its contents: its times, rights and attributes. To write contents later would
// change them again (the kernel sets the time, and takes a program's privileges away), so what is dirty goes first.
//
// Functions of files_or_real() (buffered.cc), by libc's names.
#pragma once

#include <stddef.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <utime.h>

namespace spw::libc::metadata {

int chmod(const char* path, mode_t mode) noexcept;
int fchmod(int fd, mode_t mode) noexcept;
int fchmodat(int directory, const char* path, mode_t mode, int flags) noexcept;
int utimensat(int directory, const char* path, const timespec* times, int flags) noexcept;
int futimens(int fd, const timespec* times) noexcept;
int futimes(int fd, const timeval* times) noexcept;
int utime(const char* path, const utimbuf* times) noexcept;
int utimes(const char* path, const timeval* times) noexcept;
int setxattr(const char* path, const char* name, const void* value, size_t bytes, int flags) noexcept;
int fsetxattr(int fd, const char* name, const void* value, size_t bytes, int flags) noexcept;

}  // namespace spw::libc::metadata
