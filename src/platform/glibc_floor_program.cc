// What a program needs besides glibc_floor.cc to run where glibc is 2.31, if it is more than the libraries do:
// libspillway.so exports stat and its kin itself.
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/glibc_floor.h"

SPW_OLD(pthread_rwlock_rdlock, "2.2.5");
SPW_OLD(pthread_rwlock_wrlock, "2.2.5");
SPW_OLD(pthread_rwlock_unlock, "2.2.5");
SPW_HIDDEN int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  return spw_old_pthread_rwlock_rdlock(lock);
}
SPW_HIDDEN int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  return spw_old_pthread_rwlock_wrlock(lock);
}
SPW_HIDDEN int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  return spw_old_pthread_rwlock_unlock(lock);
}

// 2.33: before it these were inline. The kernel's struct stat is libc's, in both sizes.
static_assert(sizeof(struct stat) == sizeof(struct stat64) && sizeof(struct stat) == 144);
SPW_HIDDEN int stat(const char* path, struct stat* out) noexcept {
  return static_cast<int>(syscall(SYS_stat, path, out));
}
SPW_HIDDEN int lstat(const char* path, struct stat* out) noexcept {
  return static_cast<int>(syscall(SYS_lstat, path, out));
}
SPW_HIDDEN int fstat(int fd, struct stat* out) noexcept {
  return static_cast<int>(syscall(SYS_fstat, fd, out));
}
SPW_HIDDEN int fstat64(int fd, struct stat64* out) noexcept {
  return static_cast<int>(syscall(SYS_fstat, fd, out));
}

// 2.34: before it a program brought the function along that runs its constructors, and from there on glibc runs them
// only where a program brings none.
using Main = int(int, char**, char**);
extern "C" int spw_old_start_main(Main* main, int count, char** words, Main* constructors,
                                  void (*destructors)(), void (*loader_at_exit)(), void* stack_end);
__asm__(".symver spw_old_start_main,__libc_start_main@GLIBC_2.2.5");

SPW_HIDDEN void _init();
using Constructor = void(int, char**, char**);
SPW_HIDDEN Constructor* __init_array_start[];
SPW_HIDDEN Constructor* __init_array_end[];

static int run_constructors(int count, char** words, char** environment) {
  _init();
  for (Constructor** constructor = __init_array_start; constructor != __init_array_end; ++constructor)
    (*constructor)(count, words, environment);
  return 0;
}

// Destructors are the dynamic loader's to run, of any program that it has loaded.
SPW_HIDDEN int __libc_start_main(Main* main, int count, char** words, Main*, void (*)(),
                                 void (*loader_at_exit)(), void* stack_end) {
  return spw_old_start_main(main, count, words, &run_constructors, nullptr, loader_at_exit, stack_end);
}
