// What userfaultfd this process gets: one answer for the runtime, `spillway run` and `spillway doctor`.
//
// Threads: any. For tests the variable SPILLWAY_TEST_USERFAULT makes the machine look poorer: "user" asks for faults of
// user mode only, "none" pretends that there is no userfaultfd.
#pragma once

#include "base/status.h"
#include "platform/userfault.h"

namespace spw::process {

// How to mend that userfaultfd is forbidden.
inline constexpr char kAllowUserfault[] =
    "allow it (sysctl vm.unprivileged_userfaultfd=1; in a container, a seccomp profile with userfaultfd)";

platform::FaultScope wanted_fault_scope();
// Errors: those of platform::UserFault::open.
Result<platform::UserFault> open_userfault();

}  // namespace spw::process
