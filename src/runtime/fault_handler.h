// SIGSEGV at a managed address: code that was not recompiled used a managed pointer. The handler hands the address to the
// engine, which maps the block there, and the instruction runs again. Every other fault is the program's (fault_signal.h).
//
// Threads: the handler runs in the faulting thread. Limits: none of its own.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace spw::runtime {

// `admit(address, is_store)`: false when the fault cannot be served. Called once, before any thread can fault.
Status install_fault_handler(bool (*admit)(uintptr_t address, bool is_store));

}  // namespace spw::runtime
