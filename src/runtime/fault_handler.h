// SIGSEGV at a managed address: code that was not recompiled used a managed pointer. The handler hands the address to the
// engine, which maps the block there, and the instruction runs again. Every other fault is the program's (fault_signal.h).
//
// Threads: the handler runs in the faulting thread. Limits: none of its own.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace spw::runtime {

// False when the fault of that instruction cannot be served.
using AdmitFault = bool (*)(uintptr_t address, bool is_store, uintptr_t instruction);
// Called once, before any thread can fault.
Status install_fault_handler(AdmitFault admit);

}  // namespace spw::runtime
