// What a handler of a signal that an instruction raised can do with the frame that the kernel laid for it: work on a
// stack of its own, and go back to the instruction without the kernel.
//
//   program's stack          | interrupted code | red zone | kernel's frame | handler | call_on_stack()  |
//   the handler's own stack  | [copy of all from the kernel's frame down] | callee ...
//
// The kernel's frame, from low to high: return address, ucontext (the
// handler's third argument), siginfo, extended state.
//
// Alternate stacks: while a thread runs on the handler's own stack the kernel takes its alternate stack
// for unused, and lays the next frame of SA_ONSTACK at its top, over what is there. Where the handler's
// frame is the first there, it and what is below are copied before the switch and put back after it:
// the stack pointer is on the alternate stack whenever that is the only copy. Where the signal found a
// handler of the program's on it, whose data others may change meanwhile, nothing is copied: there is
// no alternate stack until the callee returns, and signals other than SIGSEGV and SIGBUS wait.
// Going back: the kernel has saved all registers and given the handler initial vector state. What sigreturn would do is
// put those back, the signal mask, and the alternate stack; resume() does the first. may_resume() says whether that is
// all there is to do: no SS_AUTODISARM, no shadow stack, no rights of protection keys that differ, no single steps. The
// mask is for the caller to know. Nothing is missed by not entering the kernel: restartable sequences are ended when a
// signal is delivered, not when its handler returns, and a fault restarts no system call.
// Threads: any. Async-signal-safe. Limits: x86-64 Linux. Exceptions do not leave `call`.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstddef>

namespace spw::platform {

// Once, before may_resume(): what the processor has.
void prepare_to_resume();
bool may_resume(const ucontext_t& frame);
[[noreturn]] void resume(const ucontext_t& frame);

// `call(argument)` with the stack pointer at `top`, or lower. For a
// handler with this frame, which runs meanwhile where the signal found it.
bool call_on_stack(std::byte* top, bool (*call)(void*), void* argument, const ucontext_t& frame);
// The stack pointer of what was interrupted, less what it may use below (the red zone).
std::byte* free_below(const ucontext_t& frame);

}  // namespace spw::platform
