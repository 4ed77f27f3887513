#include "runtime/fault_handler.h"

#include <signal.h>
#include <ucontext.h>

#include <cerrno>
#include <cstdint>

#include "abi/managed.h"
#include "front/interpose/fault_signal.h"

namespace spw::runtime {

namespace {

bool (*g_admit)(uintptr_t, bool) = nullptr;

// The page-fault error code of x86-64: bit 1 says that the access was a write.
constexpr greg_t kWriteFault = 2;

void on_fault(int signal, siginfo_t* info, void* context) {
  auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  bool managed = info->si_code > 0 && is_managed(address);
  if (managed) {
    int saved_errno = errno;
    bool is_store = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWriteFault;
    bool served = g_admit(address, is_store);
    errno = saved_errno;
    if (served) return;
  }
  interpose::pass_fault_on(signal, info, context);
}

}  // namespace

Status install_fault_handler(bool (*admit)(uintptr_t, bool)) {
  g_admit = admit;
  return interpose::share_fault_signal(&on_fault);
}

}  // namespace spw::runtime
