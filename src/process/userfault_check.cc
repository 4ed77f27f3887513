#include "process/userfault_check.h"

#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace spw::process {

namespace {

std::string_view pretended() {
  const char* value = ::secure_getenv("SPILLWAY_TEST_USERFAULT");
  return value ? value : "";
}

}  // namespace

platform::FaultScope wanted_fault_scope() {
  return pretended() == "user" ? platform::FaultScope::kUserOnly : platform::FaultScope::kAll;
}

Result<platform::UserFault> open_userfault() {
  if (pretended() == "none") return Status(EPERM, "userfaultfd is not allowed here");
  return platform::UserFault::open(wanted_fault_scope());
}

}  // namespace spw::process
