// The forms of operator new that recompiled code calls: libspillway_cxx.so.
//
// They throw, and call new handlers, which have to be those of the program's libstdc++; libspillway.so has one of its
// own inside. Code that was not recompiled does not come here: its operator new calls malloc. Compiled with
// exceptions: a failed `new` throws through instrumented frames, not through the runtime's.
#include <dlfcn.h>

#include <new>

#include "libc/alloc/allocate.h"
#include "libc/entry.h"

// libspillway.so's, as _Znwm. Not in unit tests, which have libstdc++'s alone.
extern "C" __attribute__((weak)) void* __spw_operator_new_v1(size_t bytes);

namespace spw::libc {
namespace {

constexpr size_t kDefaultAlignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

// A program may replace operator new in a module the pass does not see together with this one. Then its operator
// delete gets what this one returns, so this one must be the program's too.
bool new_replaced() {
  static const bool replaced =
      &__spw_operator_new_v1 != nullptr &&
      dlsym(RTLD_DEFAULT, "_Znwm") != reinterpret_cast<void*>(&__spw_operator_new_v1);
  return replaced;
}

// As the standard says: try, call the new handler, try again.
void* allocate_or_handle(size_t bytes, size_t alignment) {
  for (;;) {
    if (void* object =
            alignment <= kDefaultAlignment ? __spw_malloc_v1(bytes) : __spw_memalign_v1(alignment, bytes))
      return object;
    std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void* allocate_or_null(size_t bytes, size_t alignment) noexcept {
  try {
    return allocate_or_handle(bytes, alignment);
  } catch (...) {
    return nullptr;
  }
}

}  // namespace
}  // namespace spw::libc

using namespace spw::libc;

namespace {
size_t number(std::align_val_t alignment) { return static_cast<size_t>(alignment); }
}  // namespace

SPW_ENTRY void* __spw__Znwm_v1(size_t bytes) {
  return new_replaced() ? ::operator new(bytes) : allocate_or_handle(bytes, kDefaultAlignment);
}
SPW_ENTRY void* __spw__Znam_v1(size_t bytes) {
  return new_replaced() ? ::operator new[](bytes) : allocate_or_handle(bytes, kDefaultAlignment);
}
SPW_ENTRY void* __spw__ZnwmRKSt9nothrow_t_v1(size_t bytes, const std::nothrow_t& tag) noexcept {
  return new_replaced() ? ::operator new(bytes, tag) : allocate_or_null(bytes, kDefaultAlignment);
}
SPW_ENTRY void* __spw__ZnamRKSt9nothrow_t_v1(size_t bytes, const std::nothrow_t& tag) noexcept {
  return new_replaced() ? ::operator new[](bytes, tag) : allocate_or_null(bytes, kDefaultAlignment);
}
SPW_ENTRY void* __spw__ZnwmSt11align_val_t_v1(size_t bytes, std::align_val_t alignment) {
  return new_replaced() ? ::operator new(bytes, alignment) : allocate_or_handle(bytes, number(alignment));
}
SPW_ENTRY void* __spw__ZnamSt11align_val_t_v1(size_t bytes, std::align_val_t alignment) {
  return new_replaced() ? ::operator new[](bytes, alignment) : allocate_or_handle(bytes, number(alignment));
}
SPW_ENTRY void* __spw__ZnwmSt11align_val_tRKSt9nothrow_t_v1(size_t bytes, std::align_val_t alignment,
                                                            const std::nothrow_t& tag) noexcept {
  return new_replaced() ? ::operator new(bytes, alignment, tag) : allocate_or_null(bytes, number(alignment));
}
SPW_ENTRY void* __spw__ZnamSt11align_val_tRKSt9nothrow_t_v1(size_t bytes, std::align_val_t alignment,
                                                            const std::nothrow_t& tag) noexcept {
  return new_replaced() ? ::operator new[](bytes, alignment, tag)
                        : allocate_or_null(bytes, number(alignment));
}
