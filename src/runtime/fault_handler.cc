#include "runtime/fault_handler.h"

#include <signal.h>
#include <ucontext.h>

#include <cerrno>
#include <cstdint>

#include "abi/managed.h"
#include "front/interpose/fault_signal.h"

namespace spw::runtime {

namespace {

AdmitFault g_admit = nullptr;

// The page-fault error code of x86-64: bit 1 says that the access was a write.
constexpr greg_t kWriteFault = 2;

void on_fault(int signal, siginfo_t* info, void* context) {
  auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const bool is_missing = signal == SIGBUS && info->si_code == BUS_ADRERR;
  const bool managed = (is_missing || (signal == SIGSEGV && info->si_code > 0)) && is_managed(address);
  if (managed) {
    int saved_errno = errno;
    const greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    const bool served = g_admit({address, (registers[REG_ERR] & kWriteFault) != 0, is_missing,
                                 static_cast<uintptr_t>(registers[REG_RIP])});
    errno = saved_errno;
    if (served) return;
  }
  interpose::pass_fault_on(signal, info, context);
}

}  // namespace

Status install_fault_handler(int signal, AdmitFault admit) {
  g_admit = admit;
  return interpose::share_fault_signal(signal, &on_fault);
}

}  // namespace spw::runtime
