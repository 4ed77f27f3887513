// The program's alternate signal stacks. The kernel writes a signal's frame there by itself, and ends the process where
// it cannot: also the frame of the signal that a fault arrives as. So one in managed memory is replaced by native
// memory of the same size, and the program is told of its own.
//
// Invariant: of each thread, at most one such replacement is in use.
// Threads: any, each for itself. Async-signal-safe, sigaltstack() being so. Lifetime: a replacement lasts until the
// thread sets another stack, or ends.
// Limits: the frame that a handler is given names the replacement (uc_stack). What was set by a system call without
// libc is the kernel's.
#pragma once

#include <signal.h>

namespace spw::libc {

// What the program's sigaltstack(wanted, before) does, of native structures.
int set_alternate_stack(const stack_t* wanted, stack_t* before);

}  // namespace spw::libc
