// What a buffered file has beside its contents. Its size is ours to tell. Its times, rights and attributes would be
// changed again by contents that are written later (the kernel sets the time, and takes a program's privileges away),
// so what is dirty is written before these are.
//
// Functions of files_or_real() (buffered.cc), by libc's names.
#pragma once

#include <stddef.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <utime.h>

namespace spw::libc::metadata {

int stat(const char* path, struct stat* out) noexcept;
int lstat(const char* path, struct stat* out) noexcept;
int fstat(int fd, struct stat* out) noexcept;
int fstatat(int directory, const char* path, struct stat* out, int flags) noexcept;
int stat64(const char* path, struct stat64* out) noexcept;
int lstat64(const char* path, struct stat64* out) noexcept;
int fstat64(int fd, struct stat64* out) noexcept;
int fstatat64(int directory, const char* path, struct stat64* out, int flags) noexcept;
int statx(int directory, const char* path, int flags, unsigned mask, struct statx* out) noexcept;
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
