// Processes that the program makes without fork(), which calls no handlers of pthread_atfork() for them: _Fork(),
// clone(), and system calls by number. What has to be done around a fork is done here.
//
// Threads: any; the handlers are set once, before any other use. Async-signal-safe as far as the handlers are.
// Limits: a child that goes on at once on another stack, or shares descriptors with its parent, is none of these, and
// gets no managed memory.
#pragma once

#include <sched.h>

#include "libc/system_calls/system_calls.h"

namespace spw::libc {

// Of clone(): a child with one of these shares memory or descriptors with its parent, or has it sleep.
inline constexpr int kSharingFlags = CLONE_VM | CLONE_FILES | CLONE_VFORK;

struct ForkHandlers {
  void (*before)() = nullptr;
  void (*in_parent)() = nullptr;
  void (*in_child)() = nullptr;
};

void set_fork_handlers(const ForkHandlers& handlers);
// Called before _exit() and _Exit(), which run nothing else.
void set_end_handler(void (*ends)());
void process_ends_at_once();

// Whether a system call makes a process that has its own copy of memory and goes on from where the call is.
bool is_fork(long number, const CallArguments& given);
// As real().syscall(), of such a call.
long fork_by_number(long number, const CallArguments& given);

namespace detail {
void before_fork();
void after_fork(bool is_child);
}  // namespace detail

}  // namespace spw::libc
