// Objects of the program that threads wait at (mutexes, condition variables, semaphores, futexes), where managed memory
// is not at its own addresses: libc and the kernel are given the object's place in its frame.
//
//     return real().pthread_mutex_lock(in_frame(mutex));
//
// The kernel tells sleepers apart by address and serves no fault of ours (a futex at an address without access fails
// with EFAULT, and libc aborts the program). The frame's address is good for both:
//   it is valid while the call lasts        its thread translates nothing meanwhile (abi.h, "Stable translations"), and a signal
//                                           handler has a translator of its own
//   all who meet at an object name one      while somebody waits, the block is pinned, so it stays in that frame; who comes or
//                                           wakes translates, and finds it there
// So everything that waits at such an object or wakes others goes through here, or the two would miss each other.
//
// Threads: any. Lifetime: of what is returned, the call it is given to.
// Limits: left at their own addresses, where libc reaches them by foreign faults and a sleep that fails aborts the
// program: objects that cross blocks, and robust mutexes, which libc keeps in a list. pthread_once and call_once, which
// run code of the program, are left alone, too, and so are futexes that are called otherwise (futex_waitv; in the
// translated engine, system calls without libc).
//
// In the mapped engine the objects' addresses are their own. Where its faults are the program's alone to serve
// (signals), their blocks are kept in memory for the call: one that was evicted before the kernel reads it would fail
// the sleep, and libc aborts. Of objects beyond what may be kept at a time (ManagedAccess::keep) it may still.
// A mutex that is free is taken, and an ordinary one released, without the kernel reading anything of it: none is kept
// for that (is_taken_without_kernel, is_released_without_kernel).
#pragma once

#include <errno.h>
#include <pthread.h>

#include <type_traits>

#include "libc/managed.h"

namespace spw::libc {

// Whether `object` may be given to the kernel by its place in a frame, and nowhere else.
inline bool is_in_frames(const void* object) {
  if (!kernel_cannot_reach(object)) [[likely]]
    return false;
  const Context* c = context();
  return c != nullptr && !c->in_place;
}

// Of an object in frames; nullptr: it stays where it is, since it crosses blocks.
void* place_in_frame(void* object, size_t bytes, cache::Access access);
bool keep_in_place(const void* object, access::Window* window, cache::Access access = cache::Access::kRead);
void let_go(const access::Window& window);

// An object for one call, where libc and the kernel may have it. It
// converts to a pointer; good until the end of the call's expression.
template <class Object>
class InFrame {
 public:
  // kRead for what is only looked at: it may lie where the program may
  // not store. `stays`: whether it is left alone, by what is in it.
  template <class Stays>
  InFrame(Object* object, cache::Access access, Stays stays) : object_(object) {
    auto* plain = const_cast<std::remove_volatile_t<Object>*>(object);
    if (!kernel_cannot_reach(plain)) [[likely]]
      return;
    if (is_in_frames(plain)) {
      void* place = place_in_frame(plain, sizeof(Object), access);
      if (place != nullptr && !stays(static_cast<Object*>(place))) object_ = static_cast<Object*>(place);
    } else if (const Context* c = context(); c != nullptr) {
      is_kept_ = keep_in_place(plain, &kept_);
    }
  }
  ~InFrame() {
    if (is_kept_) let_go(kept_);
  }
  InFrame(const InFrame&) = delete;
  InFrame& operator=(const InFrame&) = delete;
  operator Object*() const { return object_; }

 private:
  Object* object_;
  bool is_kept_ = false;
  access::Window kept_;
};

template <class Object>
InFrame<Object> in_frame(Object* object, cache::Access access = cache::Access::kWrite) {
  return InFrame<Object>(object, access, [](const Object*) { return false; });
}

// Bits of a mutex's kind, in libc.
constexpr int kRobust = 16, kInheritsPriority = 32, kRaisesPriority = 64, kMutexShared = 128;

// Of a managed mutex at its own address. The kernel takes part where libc has a list of the owner's or his priority.
inline bool is_taken_without_kernel(const pthread_mutex_t* mutex) {
  return kernel_cannot_reach(mutex) && !is_in_frames(mutex) &&
         (mutex->__data.__kind & (kRobust | kInheritsPriority | kRaisesPriority)) == 0;
}
// Who sleeps is found by the address alone, unless other processes may sleep there, too: then by the page.
inline bool is_released_without_kernel(const pthread_mutex_t* mutex) {
  return is_taken_without_kernel(mutex) && (mutex->__data.__kind & kMutexShared) == 0;
}

// A mutex is robust from its initialisation on.
inline InFrame<pthread_mutex_t> in_frame(pthread_mutex_t* mutex) {
  return InFrame<pthread_mutex_t>(mutex, cache::Access::kWrite, [](const pthread_mutex_t* place) {
    return (place->__data.__kind & kRobust) != 0;
  });
}

}  // namespace spw::libc
