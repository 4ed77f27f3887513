// What a program needs besides glibc_floor.cc to run where glibc is 2.31, if it is more than the libraries do:
// libspillway.so exports stat and its kin itself.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/glibc_floor.h"

SPW_OLD(dlclose, "2.2.5");
SPW_OLD(pthread_create, "2.2.5");
SPW_OLD(pthread_join, "2.2.5");
SPW_OLD(pthread_sigmask, "2.2.5");
SPW_OLD(pthread_rwlock_init, "2.2.5");
SPW_OLD(pthread_rwlock_destroy, "2.2.5");
SPW_OLD(pthread_rwlock_tryrdlock, "2.2.5");
SPW_OLD(pthread_rwlock_rdlock, "2.2.5");
SPW_OLD(pthread_rwlock_wrlock, "2.2.5");
SPW_OLD(pthread_rwlock_unlock, "2.2.5");
SPW_HIDDEN int dlclose(void* handle) noexcept { return spw_old_dlclose(handle); }
SPW_HIDDEN int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
                              void* argument) noexcept {
  return spw_old_pthread_create(thread, attributes, routine, argument);
}
SPW_HIDDEN int pthread_join(pthread_t thread, void** result) { return spw_old_pthread_join(thread, result); }
SPW_HIDDEN int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return spw_old_pthread_sigmask(how, set, before);
}
SPW_HIDDEN int pthread_rwlock_init(pthread_rwlock_t* lock, const pthread_rwlockattr_t* attributes) noexcept {
  return spw_old_pthread_rwlock_init(lock, attributes);
}
SPW_HIDDEN int pthread_rwlock_destroy(pthread_rwlock_t* lock) noexcept {
  return spw_old_pthread_rwlock_destroy(lock);
}
SPW_HIDDEN int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept {
  return spw_old_pthread_rwlock_tryrdlock(lock);
}
SPW_HIDDEN int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  return spw_old_pthread_rwlock_rdlock(lock);
}
SPW_HIDDEN int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  return spw_old_pthread_rwlock_wrlock(lock);
}
SPW_HIDDEN int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  return spw_old_pthread_rwlock_unlock(lock);
}

// 2.36: for libevent's names of hosts, which come along with the rest of it.
SPW_HIDDEN void arc4random_buf(void* out, size_t bytes) noexcept {
  auto* at = static_cast<char*>(out);
  while (bytes > 0) {
    const long drawn = syscall(SYS_getrandom, at, bytes, 0);
    if (drawn <= 0) continue;
    at += drawn;
    bytes -= static_cast<size_t>(drawn);
  }
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

// 2.38: newer headers call strtol and its kin by new names, which also read "0b1". Archives that are built with them,
// as libdw is, ask for those. Declared by hand, since the headers would turn the old names into the new ones here, too.
#define SPW_NUMBER(type, name)                                                       \
  extern "C" type spw_old_##name(const char*, char**, int);                          \
  __asm__(".symver spw_old_" #name "," #name "@GLIBC_2.2.5");                        \
  SPW_HIDDEN type __isoc23_##name(const char* text, char** end, int base) noexcept { \
    return spw_old_##name(text, end, base);                                          \
  }
SPW_NUMBER(long, strtol)
SPW_NUMBER(long long, strtoll)
SPW_NUMBER(unsigned long, strtoul)
SPW_NUMBER(unsigned long long, strtoull)
#define SPW_SCAN(source, name, list_name)                                 \
  extern "C" int __isoc99_##list_name(source*, const char*, va_list);     \
  SPW_HIDDEN int __isoc23_##name(source* from, const char* format, ...) { \
    va_list arguments;                                                    \
    va_start(arguments, format);                                          \
    const int count = __isoc99_##list_name(from, format, arguments);      \
    va_end(arguments);                                                    \
    return count;                                                         \
  }
SPW_SCAN(const char, sscanf, vsscanf)
SPW_SCAN(void, fscanf, vfscanf)

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
