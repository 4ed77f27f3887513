#include "runtime/fault_handler.h"

#include <signal.h>
#include <ucontext.h>

#include <cerrno>
#include <cstdint>

#include "abi/managed.h"
#include "runtime/fatal.h"

namespace spw::runtime {

namespace {

bool (*g_admit)(uintptr_t, bool) = nullptr;
struct sigaction g_previous;

// The page-fault error code of x86-64: bit 1 says that the access was a write.
constexpr greg_t kWriteFault = 2;

void pass_on(int signal, siginfo_t* info, void* context) {
  if (g_previous.sa_flags & SA_SIGINFO) return g_previous.sa_sigaction(signal, info, context);
  if (g_previous.sa_handler == SIG_IGN) return;
  if (g_previous.sa_handler != SIG_DFL) return g_previous.sa_handler(signal);
  // The default action, with the fault's own address in the core: restore it and let the instruction fault again.
  ::sigaction(signal, &g_previous, nullptr);
  // One that was sent by hand belongs to no instruction.
  if (info->si_code <= 0) ::raise(signal);
}

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
  pass_on(signal, info, context);
}

}  // namespace

Status install_fault_handler(bool (*admit)(uintptr_t, bool)) {
  g_admit = admit;
  struct sigaction action{};
  action.sa_sigaction = &on_fault;
  // SA_NODEFER: serving a fault may itself be interrupted by another thread's; the program's mask is not ours to grow.
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;
  if (::sigaction(SIGSEGV, &action, &g_previous) != 0)
    return Status(errno, "cannot install the fault handler");
  return {};
}

}  // namespace spw::runtime
