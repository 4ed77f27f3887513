// libc's own versions of the functions this library exports under their ordinary names, found once; and those of them
// that buffered files take over.
//
// Code of the runtime that must not come back to its own exports calls real().NAME, which is always libc's own. What is
// done on behalf of the program, about descriptors and files, is files_or_real().NAME: where files are buffered that
// asks them first (io/buffered.cc), elsewhere it is libc's own. Which functions there are: abi/calls.def.
// Threads: any. Lifetime: the process. Limits: found with dlsym(RTLD_NEXT), so the library must be in the global scope
// before libc (linked before it, or preloaded). While the table is being filled, this thread's exported allocations are
// served from a small static buffer (resolving(), alloc/alloc_exports.cc), because dlsym may allocate.
#pragma once

#include <aio.h>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <malloc.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include "base/atomic.h"
#include "base/in_runtime.h"

// Headers declare these with _FORTIFY_SOURCE only.
extern "C" {
int __cxa_atexit(void (*function)(void*), void* argument, void* library) noexcept;
int __ppoll_chk(pollfd*, nfds_t, const timespec*, const sigset_t*, size_t);
int __vfprintf_chk(FILE*, int, const char*, va_list);
int __vdprintf_chk(int, int, const char*, va_list);
}

namespace spw::libc {

struct RealFunctions {
#define SPW_TABLE(name) decltype(&::name) name = nullptr;
#include "abi/calls.def"
};

struct FileFunctions {
#define SPW_FILE(name) decltype(&::name) name = nullptr;
#include "abi/calls.def"
};

namespace detail {
extern Atomic<const RealFunctions*> real_functions;
extern Atomic<const FileFunctions*> file_functions;
const RealFunctions& find_real_functions();
}  // namespace detail

inline const RealFunctions& real() {
  const RealFunctions* found = detail::real_functions.load_acquire();
  return found != nullptr ? *found : detail::find_real_functions();
}

inline const FileFunctions& files_or_real() {
  const FileFunctions* found = detail::file_functions.load_acquire();
  if (found != nullptr) return *found;
  (void)detail::find_real_functions();
  return *detail::file_functions.load_acquire();
}

// From now on files_or_real() is `table`, which stays.
void take_over_files(const FileFunctions& table);

// This thread is inside find_real_functions().
bool resolving();

// libc's allocator, for calls that come from the program's code. A signal waits until it is left: its handler may make
// the first managed access of its kind, which allocates.
inline void* libc_malloc(size_t bytes) {
  InRuntime guard;
  return real().malloc(bytes);
}
inline void* libc_calloc(size_t count, size_t bytes) {
  InRuntime guard;
  return real().calloc(count, bytes);
}
inline void* libc_memalign(size_t alignment, size_t bytes) {
  InRuntime guard;
  return real().memalign(alignment, bytes);
}
inline void* libc_realloc(void* object, size_t bytes) {
  InRuntime guard;
  return real().realloc(object, bytes);
}
inline void libc_free(void* object) {
  InRuntime guard;
  real().free(object);
}
// For a std::unique_ptr of what libc_malloc() gave.
struct FreeNative {
  void operator()(void* object) const { libc_free(object); }
};

}  // namespace spw::libc
