// What the interposed functions need, set once by process/ when everything stands.
//
// C entry points have no object to be called on, so there is one context a process,
// behind one atomic pointer. The first allocation that is to be managed has it made (allocation_context()).
// Until it is set, and inside the runtime itself (InRuntime), every call goes to libc.
//
// Threads: set_context() when no other thread uses managed memory yet, or none is left. Lifetime: a context and what it
// points to outlive every thread, or are leaked at exit.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "abi/managed.h"
#include "access/managed_access.h"
#include "base/atomic.h"
#include "base/in_runtime.h"
#include "heap/heap.h"
#include "page_cache/mappings.h"
#include "region/region_map.h"

namespace spw::access {

// Keeps ranges in memory, whole blocks; one that was pinned is unpinned with the very same bounds. nullptr: not here.
struct Pins {
  bool (*pin)(uintptr_t begin, uint64_t bytes) = nullptr;
  void (*unpin)(uintptr_t begin, uint64_t bytes) = nullptr;
  // Both may wait in a forked child, until it has parts of its own: who holds a lock while he pins waits before that.
  void (*await)() = nullptr;
};

struct Context {
  heap::Heap* heap = nullptr;
  region::RegionMap* regions = nullptr;
  access::ManagedAccess* access = nullptr;
  uint64_t memory_bytes = UINT64_MAX;  // the process's cap
  bool in_place = false;               // managed memory is at its own addresses (mapped engine)
  bool in_place_at_first = false;      // as in_place, until elsewhere_from_now_on(); system calls may not
  // Mappings of files that are only read. nullptr: they are managed as all others.
  page_cache::Mappings* mapped_reads = nullptr;
  // Only those of files that the program can also write to by calls, whose bytes have to be the kernel's then.
  bool manages_other_reads = false;
  void (*warn)(std::string_view line) = nullptr;
  Pins pins{};
  bool spills_in_clear = true;  // what leaves memory can be read on its store
  // Whether mmap of the regular file open as `fd` is managed; nullptr: of every one.
  bool (*maps_file)(int fd) = nullptr;
  // A store over a duplicate of `fd` (a regular file). nullptr: file mappings stay native.
  Result<std::unique_ptr<store::Store>> (*open_file_store)(int fd, bool writable) = nullptr;
};

// nullptr takes the context away (in a forked child).
void set_context(const Context* context);
// Who has found memory in place meanwhile may go on: it is only slow there.
void elsewhere_from_now_on();
// System calls may be given managed memory: their faults are served.
// Who has brought it in, or copied it, may go on: it is only slow.
void kernel_reaches_from_now_on();
// In a forked child, whose faults threads serve themselves.
void kernel_reaches_no_more();
// In a forked child: what is freed there stays as it is, since its memory is the parent's alone.
void note_forked();
// Called, once, by the first allocation that asks for a context and finds none. It sets the
// context, or leaves things native.
void set_initialiser(void (*ensure_initialised)());

namespace detail {
extern Atomic<const Context*> context;
extern Atomic<bool> in_place;
extern Atomic<bool> forked;
extern Atomic<bool> kernel_reaches;
const Context* initialise();
}  // namespace detail

// Pairs with the release in set_context().
inline const Context* context() { return detail::context.load_acquire(); }
// For allocations: the context, initialising first if need be; nullptr inside the runtime.
inline const Context* allocation_context() {
  if (InRuntime::here()) [[unlikely]]
    return nullptr;
  const Context* c = context();
  return c != nullptr ? c : detail::initialise();
}

using spw::is_managed;

// This is a forked child: note_forked() was called.
inline bool is_forked() { return detail::forked.load_relaxed(); }

// Whether a system call may be given managed memory. Once true, it stays true, but in a forked child.
inline bool kernel_reaches() { return detail::kernel_reaches.load_relaxed(); }

// Managed, and its bytes are not at its address: this code has to go through ManagedAccess. Once true, it stays true.
inline bool is_elsewhere(const void* p) { return is_managed(p) && !detail::in_place.load_relaxed(); }
template <class... More>
bool any_elsewhere(More*... pointers) {
  return (is_elsewhere(pointers) || ...);
}

}  // namespace spw::access
