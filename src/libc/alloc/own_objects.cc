// operator new and delete of libspillway.so's own code: always glibc's allocator, whatever the program has in its
// place.
//
// A program's own allocator may have its memory in managed mappings. A thread that is inside of it, with its locks,
// and faults there is served by the runtime, which therefore must not come to that allocator for objects of its own.
// The linker has all of libspillway.so's references to operator new and delete come here (--wrap, src/api), those of
// the libstdc++ in it, too. Counted against the quota, as all native memory is.
//
// Threads: any. Errors: no memory ends the process with a line (base/need.h), since the runtime has no exceptions;
// nullptr where nothrow is asked.
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/need.h"
#include "libc/alloc/quota.h"

namespace {

using spw::need_memory;

struct Glibc {
  void* (*malloc)(size_t bytes);
  void* (*memalign)(size_t alignment, size_t bytes);
  void (*free)(void* object);
  size_t (*malloc_usable_size)(void* object);
};

template <class Function>
void find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  need_memory(reinterpret_cast<void*>(*function), "get memory to find libc's allocator");
}

Glibc found_glibc() {
  void* library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  need_memory(library, "get memory to find libc's allocator");
  Glibc found;
  find(library, "malloc", &found.malloc);
  find(library, "memalign", &found.memalign);
  find(library, "free", &found.free);
  find(library, "malloc_usable_size", &found.malloc_usable_size);
  return found;
}

// What the search allocates is malloc's, not operator new's.
const Glibc& glibc() {
  static const Glibc functions = found_glibc();
  return functions;
}

void* counted(void* object) {
  if (object != nullptr)
    spw::libc::count_native_bytes(static_cast<int64_t>(glibc().malloc_usable_size(object)));
  return object;
}
// So that tests can make every allocation fail once (tests/faults): with SPILLWAY_TEST_ALLOCATIONS set each asks the
// kernel first, by a call that nothing else makes and that succeeds unless a test has it fail.
bool is_refused() {
  static const bool asks = ::secure_getenv("SPILLWAY_TEST_ALLOCATIONS") != nullptr;
  return asks && ::syscall(SYS_getpgid, 0) < 0;
}
void* allocate_or_null(size_t bytes) { return is_refused() ? nullptr : counted(glibc().malloc(bytes)); }
void* allocate_or_null(size_t bytes, size_t alignment) {
  return is_refused() ? nullptr : counted(glibc().memalign(alignment, bytes));
}
void* checked(void* object) {
  need_memory(object, "get memory for an object of the runtime");
  return object;
}
void give_back(void* object) {
  if (object == nullptr) return;
  spw::libc::count_native_bytes(-static_cast<int64_t>(glibc().malloc_usable_size(object)));
  glibc().free(object);
}

}  // namespace

// By mangled name: new and new[], plain and aligned, throwing and not; delete and delete[], with and without size.
extern "C" {
void* __wrap__Znwm(size_t bytes) { return checked(allocate_or_null(bytes)); }
void* __wrap__Znam(size_t bytes) { return checked(allocate_or_null(bytes)); }
void* __wrap__ZnwmRKSt9nothrow_t(size_t bytes, const void*) { return allocate_or_null(bytes); }
void* __wrap__ZnamRKSt9nothrow_t(size_t bytes, const void*) { return allocate_or_null(bytes); }
void* __wrap__ZnwmSt11align_val_t(size_t bytes, size_t to) { return checked(allocate_or_null(bytes, to)); }
void* __wrap__ZnamSt11align_val_t(size_t bytes, size_t to) { return checked(allocate_or_null(bytes, to)); }
void* __wrap__ZnwmSt11align_val_tRKSt9nothrow_t(size_t bytes, size_t to, const void*) {
  return allocate_or_null(bytes, to);
}
void* __wrap__ZnamSt11align_val_tRKSt9nothrow_t(size_t bytes, size_t to, const void*) {
  return allocate_or_null(bytes, to);
}
void __wrap__ZdlPv(void* object) { give_back(object); }
void __wrap__ZdaPv(void* object) { give_back(object); }
void __wrap__ZdlPvm(void* object, size_t) { give_back(object); }
void __wrap__ZdaPvm(void* object, size_t) { give_back(object); }
void __wrap__ZdlPvRKSt9nothrow_t(void* object, const void*) { give_back(object); }
void __wrap__ZdaPvRKSt9nothrow_t(void* object, const void*) { give_back(object); }
void __wrap__ZdlPvSt11align_val_t(void* object, size_t) { give_back(object); }
void __wrap__ZdaPvSt11align_val_t(void* object, size_t) { give_back(object); }
void __wrap__ZdlPvmSt11align_val_t(void* object, size_t, size_t) { give_back(object); }
void __wrap__ZdaPvmSt11align_val_t(void* object, size_t, size_t) { give_back(object); }
void __wrap__ZdlPvSt11align_val_tRKSt9nothrow_t(void* object, size_t, const void*) { give_back(object); }
void __wrap__ZdaPvSt11align_val_tRKSt9nothrow_t(void* object, size_t, const void*) { give_back(object); }
}
