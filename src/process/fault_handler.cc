#include "process/fault_handler.h"

#include <signal.h>
#include <ucontext.h>

#include <cerrno>
#include <cstdint>

#include "abi/managed.h"
#include "base/in_runtime.h"
#include "libc/signals/fault_signal.h"
#include "platform/signal_frame.h"
#include "process/fault_stack.h"

namespace spw::process {

namespace {

AdmitFault g_admit = nullptr;
ExplainBusError g_explain = nullptr;

// The page-fault error code of x86-64: bit 1 says that the access was a write, bit 4 a fetch.
constexpr greg_t kWriteFault = 2, kFetchFault = 16;

bool admit(void* fault) { return g_admit(*static_cast<const Fault*>(fault)); }

bool serve(const Fault& fault, const ucontext_t& frame) {
  InRuntime guard;  // ends here, not on the stack of our own: it may let handlers of the program in
  return call_on_fault_stack(&admit, const_cast<Fault*>(&fault), frame);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const bool is_missing = signal == SIGBUS && info->si_code == BUS_ADRERR;
  const bool managed = (is_missing || (signal == SIGSEGV && info->si_code > 0)) && is_managed(address);
  if (managed) {
    const int saved_errno = errno;
    const auto& frame = *static_cast<const ucontext_t*>(context);
    const greg_t* registers = frame.uc_mcontext.gregs;
    const bool served =
        serve({address, (registers[REG_ERR] & kWriteFault) != 0, is_missing, InRuntime::here(),
               static_cast<uintptr_t>(registers[REG_RIP]), (registers[REG_ERR] & kFetchFault) != 0},
              frame);
    errno = saved_errno;
    if (served && platform::may_resume(frame)) platform::resume(frame);
    if (served) return;
  }
  // BUS_MCEERR_AR: memory that is a file, and has gone bad.
  if (!managed && (is_missing || (signal == SIGBUS && info->si_code == BUS_MCEERR_AR)))
    g_explain(address, InRuntime::here());
  libc::pass_fault_on(signal, info, context);
}

}  // namespace

Status install_fault_handler(int signal, AdmitFault admit, ExplainBusError explain) {
  g_admit = admit;
  g_explain = explain;
  if (Status status = prepare_fault_stacks(); !status) return status;
  platform::prepare_to_resume();
  return libc::share_fault_signal(signal, &on_fault);
}

}  // namespace spw::process
