#include "libc/process/thread_stacks.h"

#include <sys/mman.h>

#include "base/in_runtime.h"
#include "libc/managed.h"
#include "libc/map/marks.h"
#include "libc/map/parts.h"

namespace spw::libc {

namespace {

Atomic<bool> g_any_kept{false};

void warn_of_no_room(const Context& c) {
  static Atomic<bool> told{false};
  if (c.warn != nullptr && !told.exchange_acquire(true))
    c.warn(
        "a thread's stack lies in managed memory and cannot be kept in memory: a fault on it ends the "
        "program; with --faults threads it does not");
}

// A fault for a store, of what is clean, where the program may store. (What is stored is what is there, which compilers
// make a load of.)
void make_writable(const Context& c, const ThreadStack& stack) {
  for (uintptr_t begin = stack.begin, end = stack.end; begin < stack.end; begin = end, end = stack.end) {
    const int rights = c.access->program_rights(begin, &end);
    for (uintptr_t page = begin; page < end && (rights & PROT_WRITE) != 0; page += kMmuPageBytes)
      asm volatile("lock orb $0, %0" : "+m"(*static_cast<unsigned char*>(pointer(page))));
  }
}

}  // namespace

bool keeps_any_stack() { return g_any_kept.load_relaxed(); }

ThreadStack stack_of(const pthread_attr_t* attributes) {
  void* lowest = nullptr;
  size_t bytes = 0;
  if (attributes == nullptr || pthread_attr_getstack(attributes, &lowest, &bytes) != 0 || !is_managed(lowest))
    return {};
  const Pages pages = pages_around(lowest, bytes);
  return pages.is_valid ? ThreadStack{pages.begin, pages.end} : ThreadStack{};
}

ThreadStack stack_of(pthread_t thread) {
  pthread_attr_t attributes;
  if (!keeps_any_stack()) return {};
  InRuntime guard;
  if (pthread_getattr_np(thread, &attributes) != 0) return {};
  const ThreadStack stack = stack_of(&attributes);
  pthread_attr_destroy(&attributes);
  return stack;
}

void keep_in_memory(const ThreadStack& stack) {
  const Context* c = context();
  if (c == nullptr || c->pins.pin == nullptr) return;
  {
    InRuntime guard;
    c->access->keep_in_place(stack.begin, stack.end - stack.begin);
    if (whole_until(*c, stack.begin, stack.end) != stack.end || !keep_stack(*c, stack.begin, stack.end))
      return warn_of_no_room(*c);
    c->access->keep_open(stack.begin, stack.end - stack.begin);
    g_any_kept.store_relaxed(true);
  }
  make_writable(*c, stack);
}

void release_within(void* object, size_t bytes) {
  const Pages pages = pages_around(object, bytes);
  release({pages.begin, pages.end});
}

void release(const ThreadStack& stack) {
  if (const Context* c = context(); c != nullptr) {
    InRuntime guard;
    release_stack(*c, stack.begin, stack.end);
  }
}

}  // namespace spw::libc
