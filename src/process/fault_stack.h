// The stack on which a thread serves its faults (fault_handler.h): taken by its first fault, given back at its end.
//
// Invariant: at most one call of a thread begins at the top of its stack; it is busy meanwhile.
// Threads: any. Async-signal-safe, in the runtime (base/in_runtime.h). Lifetime: the process's.
#pragma once

#include <ucontext.h>

#include "base/status.h"

namespace spw::process {

// Before any fault; again: nothing more.
Status prepare_fault_stacks();
// `call(argument)` there, for the handler with this frame; where the
// handler is, if it is there already or there is no such stack.
bool call_on_fault_stack(bool (*call)(void*), void* argument, const ucontext_t& frame);

}  // namespace spw::process
