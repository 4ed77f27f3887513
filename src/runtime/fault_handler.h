// A fault at a managed address: code that was not recompiled used a managed pointer. The handler hands the address to the
// engine, which makes the block accessible there, and the instruction runs again. Every other fault is the program's
// (fault_signal.h).
//
// Threads: the handler runs in the faulting thread. Limits: none of its own.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace spw::runtime {

struct Fault {
  uintptr_t address = 0;
  bool is_store = false;
  bool is_missing =
      false;  // SIGBUS: userfaultfd has no page there, or a protected one (platform::FaultDelivery::kSignal)
  uintptr_t instruction = 0;
};
// False when the fault cannot be served.
using AdmitFault = bool (*)(const Fault& fault);
// Called once for a signal (SIGSEGV, SIGBUS), before any thread can fault.
Status install_fault_handler(int signal, AdmitFault admit);

}  // namespace spw::runtime
