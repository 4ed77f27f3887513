// operator new under its ordinary names, for code that was not recompiled. libstdc++'s would come to malloc by itself;
// that of an allocator which the program is linked with would not, and keep what it hands out where no cap is held.
//
// Where there is no room, the next operator new is asked: it calls the new handler and throws, as the program's own
// libstdc++ does. So this is compiled with exceptions, which pass through.
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

#include <new>

#include "base/check.h"
#include "libc/alloc/allocate.h"
#include "libc/entry.h"

using namespace spw::libc;

#define SPW_CALLER __builtin_return_address(0)

namespace {

constexpr size_t kDefaultAlignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
size_t number(std::align_val_t alignment) { return static_cast<size_t>(alignment); }

template <class... Arguments>
void* ask_next(const char* name, Arguments... arguments) {
  using Function = void* (*)(Arguments...);
  auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
  SPW_CHECK(next != nullptr);  // who calls operator new has a libstdc++
  return next(arguments...);
}

}  // namespace

// By their mangled names: operator delete stays what it is, and comes to free.
SPW_ENTRY void* _Znwm(size_t bytes) {
  void* object = process_allocate(bytes, kDefaultAlignment, SPW_CALLER);
  return object != nullptr ? object : ask_next("_Znwm", bytes);
}
SPW_ENTRY void* _Znam(size_t bytes) {
  void* object = process_allocate(bytes, kDefaultAlignment, SPW_CALLER);
  return object != nullptr ? object : ask_next("_Znam", bytes);
}
SPW_ENTRY void* _ZnwmRKSt9nothrow_t(size_t bytes, const std::nothrow_t* tag) noexcept {
  void* object = process_allocate(bytes, kDefaultAlignment, SPW_CALLER);
  return object != nullptr ? object : ask_next("_ZnwmRKSt9nothrow_t", bytes, tag);
}
SPW_ENTRY void* _ZnamRKSt9nothrow_t(size_t bytes, const std::nothrow_t* tag) noexcept {
  void* object = process_allocate(bytes, kDefaultAlignment, SPW_CALLER);
  return object != nullptr ? object : ask_next("_ZnamRKSt9nothrow_t", bytes, tag);
}
SPW_ENTRY void* _ZnwmSt11align_val_t(size_t bytes, std::align_val_t alignment) {
  void* object = process_allocate(bytes, number(alignment), SPW_CALLER);
  return object != nullptr ? object : ask_next("_ZnwmSt11align_val_t", bytes, alignment);
}
SPW_ENTRY void* _ZnamSt11align_val_t(size_t bytes, std::align_val_t alignment) {
  void* object = process_allocate(bytes, number(alignment), SPW_CALLER);
  return object != nullptr ? object : ask_next("_ZnamSt11align_val_t", bytes, alignment);
}
SPW_ENTRY void* _ZnwmSt11align_val_tRKSt9nothrow_t(size_t bytes, std::align_val_t alignment,
                                                   const std::nothrow_t* tag) noexcept {
  void* object = process_allocate(bytes, number(alignment), SPW_CALLER);
  return object != nullptr ? object : ask_next("_ZnwmSt11align_val_tRKSt9nothrow_t", bytes, alignment, tag);
}
SPW_ENTRY void* _ZnamSt11align_val_tRKSt9nothrow_t(size_t bytes, std::align_val_t alignment,
                                                   const std::nothrow_t* tag) noexcept {
  void* object = process_allocate(bytes, number(alignment), SPW_CALLER);
  return object != nullptr ? object : ask_next("_ZnamSt11align_val_tRKSt9nothrow_t", bytes, alignment, tag);
}

// By which libspillway_cxx.so knows the one above.
SPW_ENTRY void* __spw_operator_new_v1(size_t bytes) __attribute__((alias("_Znwm")));
