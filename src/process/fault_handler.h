// A fault at a managed address: code that was not recompiled used a managed pointer.
// The handler hands the address to the engine, which makes the block accessible there,
// and the instruction runs again. Every other fault is the program's (fault_signal.h).
//
// A fault is served on a stack of the runtime's own, one for each thread, from its first fault to
// its end: the program's may be small, or nearly full, or an alternate one for short handlers. Of
// the program's stack it takes the kernel's frame and less than 1 KiB. Then the thread goes back to
// the instruction by itself where that is all that the kernel would do (platform/signal_frame.h):
// the handler changes no mask (fault_signal.h), and what it put off is let in before.
// Nested faults: what serves one may touch memory that was refused to the program
// (MappedEngine::admit_fault), and a handler of the program's that cannot wait may run above it
// (handlers.h): such a fault is served below what it interrupted, or where it is. The program's other
// handlers run on the program's stacks: the runtime is left, and they are let in, back on these.
//
// Threads: the handler runs in the faulting thread. Limits: where there is no memory
// for a stack, and in a thread that ends, after the last round of its thread-specific
// destructors, faults are served where they are or leave their stack behind.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace spw::process {

struct Fault {
  uintptr_t address = 0;
  bool is_store = false;
  bool is_missing =
      false;  // SIGBUS: userfaultfd has no page there, or a protected one (platform::FaultDelivery::kSignal)
  bool is_own = false;  // the thread is in the runtime
  uintptr_t instruction = 0;
  bool is_fetch = false;  // of that instruction
};
// False when the fault cannot be served.
using AdmitFault = bool (*)(const Fault& fault);
// Of memory that is not managed, of which the kernel says that there is nothing behind the address: may end the process
// with a line that says why, or return. `is_own`: the thread is in the runtime.
using ExplainBusError = void (*)(uintptr_t address, bool is_own);
// Called once for a signal (SIGSEGV, SIGBUS), before any thread can fault.
Status install_fault_handler(int signal, AdmitFault admit, ExplainBusError explain);

}  // namespace spw::process
