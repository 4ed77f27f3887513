// Stacks of threads that the program has put into managed memory (pthread_attr_setstack).
//
// Such a stack is kept in memory and may be stored to while its thread runs. On it the kernel lays signals, that of a
// fault on the stack itself among them; at its end is libc's own record of the thread, in which the kernel notes where
// the thread runs (rseq) and that it has ended, and which libc uses with all signals blocked. None of that can wait
// for a page. Not where threads of the runtime serve faults, which serve the kernel's, too, but it costs nothing there.
//
// Until pthread_join() has joined the thread; what it does not join, until the memory is unmapped or freed.
// Threads: any. Limits: half of the frames can be pinned (process/pinned_ranges.h); beyond that a warning. A stack that
// shares a page with another one is kept with the other. Not kept is the stack of the thread that forks, in the child,
// and what is flushed on demand (spw_flush) is protected until its next store.
#pragma once

#include <pthread.h>

#include <cstdint>

namespace spw::libc {

struct ThreadStack {
  uintptr_t begin = 0, end = 0;  // of managed memory; 0: it is elsewhere
  bool is_managed() const { return begin != 0; }
};

// Or has ever been.
bool keeps_any_stack();
ThreadStack stack_of(const pthread_attr_t* attributes);
// Of one that has not been joined.
ThreadStack stack_of(pthread_t thread);
void keep_in_memory(const ThreadStack& stack);
void release(const ThreadStack& stack);
// An object of malloc is freed.
void release_within(void* object, size_t bytes);

}  // namespace spw::libc
