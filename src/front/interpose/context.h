// What the interposed functions need, set once by runtime/ when everything stands.
//
// C entry points have no object to be called on, so there is one context a process, behind one atomic pointer. Until it is
// set, in a forked child after it was taken away, and inside the runtime itself (InRuntime), every call goes to libc.
//
// Threads: set_context() when no other thread uses managed memory yet, or none is left. Lifetime: a context and what it
// points to outlive every thread, or are leaked at exit.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "abi/managed.h"
#include "base/atomic.h"
#include "heap/heap.h"
#include "region/managed_access.h"
#include "region/region_map.h"

namespace spw::interpose {

struct InterposeContext {
  heap::Heap* heap = nullptr;
  region::RegionMap* regions = nullptr;
  region::ManagedAccess* access = nullptr;
  uint64_t threshold_bytes = 64 * kKiB;  // allocations of at least this size are managed
  uint64_t quota_bytes = UINT64_MAX;  // when more native bytes than this are live, all new ones are managed
  bool map_files = true;              // mmap of regular files from instrumented code is managed
  // A store over a duplicate of `fd` (a regular file). nullptr: file mappings stay native.
  Result<std::unique_ptr<store::Store>> (*open_file_store)(int fd, bool writable) = nullptr;
};

// nullptr takes the context away (in a forked child).
void set_context(const InterposeContext* context);
// Called, once, by the first redirected allocation that finds no context. It sets the context, or leaves things native.
void set_initialiser(void (*ensure_initialised)());

namespace detail {
extern Atomic<const InterposeContext*> context;
extern constinit thread_local unsigned in_runtime_depth __attribute__((tls_model("initial-exec")));
const InterposeContext* initialise();
}  // namespace detail

// Pairs with the release in set_context().
inline const InterposeContext* context() { return detail::context.load_acquire(); }
// For allocations: the context, initialising first if need be; nullptr inside the runtime.
inline const InterposeContext* allocation_context() {
  if (detail::in_runtime_depth != 0) [[unlikely]]
    return nullptr;
  const InterposeContext* c = context();
  return c != nullptr ? c : detail::initialise();
}

using spw::is_managed;
template <class... More>
bool any_managed(More*... pointers) {
  return (is_managed(pointers) || ...);
}

// While one lives, this thread's redirected allocations are native: for callbacks of the program that the runtime makes.
class InRuntime {
 public:
  InRuntime() { ++detail::in_runtime_depth; }
  ~InRuntime() { --detail::in_runtime_depth; }
  InRuntime(const InRuntime&) = delete;
  InRuntime& operator=(const InRuntime&) = delete;
};

}  // namespace spw::interpose
