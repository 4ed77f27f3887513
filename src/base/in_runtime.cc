#include "base/in_runtime.h"

namespace spw::detail {

constinit thread_local InRuntimeState in_runtime{};

void leave_runtime() {
  if (auto* call = in_runtime.at_exit.exchange_relaxed(nullptr)) call();
}

}  // namespace spw::detail
