// Functions of glibc that have newer symbol versions than 2.31's, under the versions they have had all along.
//
// What is linked binds to the newest version that the machine it is built on knows, and then does not load where
// glibc is older, though the functions are the same: in 2.33 and 2.34 they only moved between glibc's libraries, or
// stopped being inline. Hidden definitions here stand before glibc's for all that is linked together, libstdc++'s
// archive too, and pass on to the old versions, which every glibc keeps. Before 2.34 those are in libpthread and
// libdl: who links this needs both by name (cmake/loads_anywhere.cmake), and they are empty from there on.
//
// Threads, errors: as the functions themselves.
#include "platform/glibc_floor.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

SPW_OLD(dlopen, "2.2.5");
SPW_OLD(dlsym, "2.2.5");
SPW_OLD(dlerror, "2.2.5");
SPW_OLD(dladdr, "2.2.5");
SPW_OLD(dladdr1, "2.3.3");
SPW_OLD(pthread_attr_getstack, "2.2.5");
SPW_OLD(pthread_getattr_np, "2.2.5");
SPW_OLD(pthread_key_create, "2.2.5");
SPW_OLD(pthread_key_delete, "2.2.5");
SPW_OLD(pthread_getspecific, "2.2.5");
SPW_OLD(pthread_setspecific, "2.2.5");
SPW_OLD(pthread_once, "2.2.5");

SPW_HIDDEN void* dlopen(const char* file, int mode) noexcept { return spw_old_dlopen(file, mode); }
// RTLD_NEXT is what comes after the caller's library, which this is, too.
SPW_HIDDEN void* dlsym(void* handle, const char* name) noexcept { return spw_old_dlsym(handle, name); }
SPW_HIDDEN char* dlerror() noexcept { return spw_old_dlerror(); }
SPW_HIDDEN int dladdr(const void* address, Dl_info* info) noexcept { return spw_old_dladdr(address, info); }
SPW_HIDDEN int dladdr1(const void* address, Dl_info* info, void** extra, int flags) noexcept {
  return spw_old_dladdr1(address, info, extra, flags);
}
SPW_HIDDEN int pthread_attr_getstack(const pthread_attr_t* attributes, void** lowest,
                                     size_t* bytes) noexcept {
  return spw_old_pthread_attr_getstack(attributes, lowest, bytes);
}
SPW_HIDDEN int pthread_getattr_np(pthread_t thread, pthread_attr_t* attributes) noexcept {
  return spw_old_pthread_getattr_np(thread, attributes);
}
SPW_HIDDEN int pthread_key_create(pthread_key_t* key, void (*destroy)(void*)) noexcept {
  return spw_old_pthread_key_create(key, destroy);
}
SPW_HIDDEN int pthread_key_delete(pthread_key_t key) noexcept { return spw_old_pthread_key_delete(key); }
SPW_HIDDEN void* pthread_getspecific(pthread_key_t key) noexcept { return spw_old_pthread_getspecific(key); }
SPW_HIDDEN int pthread_setspecific(pthread_key_t key, const void* value) noexcept {
  return spw_old_pthread_setspecific(key, value);
}
SPW_HIDDEN int pthread_once(pthread_once_t* control, void (*routine)()) {
  return spw_old_pthread_once(control, routine);
}

// 2.36: for libstdc++'s random_device, which comes along with the rest of it. The runtime draws with getrandom.
SPW_HIDDEN unsigned arc4random() noexcept {
  unsigned drawn = 0;
  while (syscall(SYS_getrandom, &drawn, sizeof drawn, 0) != sizeof drawn) continue;
  return drawn;
}

// 2.32: libstdc++ counts references without atomic operations while it is true. The runtime has threads.
extern "C" __attribute__((visibility("hidden"))) char __libc_single_threaded;
char __libc_single_threaded = 0;
