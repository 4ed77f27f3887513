#include "libc/system_calls/dispatch.h"

#include <errno.h>
#include <linux/audit.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "abi/managed.h"
#include "libc/managed.h"
#include "libc/real.h"
#include "libc/signals/fault_signal.h"
#include "libc/signals/kernel_action.h"
#include "libc/signals/signal_lock.h"
#include "libc/system_calls/system_calls.h"
#include "platform/call_dispatch.h"

namespace spw::libc {

namespace {

constexpr greg_t kCallInstructionBytes = 2;
constexpr int kSiCodeOfDispatch = 2;  // SYS_USER_DISPATCH, which libc's <signal.h> does not have

// Do not change once memory is watched.
bool g_is_prepared = false;
platform::CodeRange g_libc;
greg_t g_return_from_handler = 0;  // libc's

bool shares_memory(long number, const CallArguments& given) {
  if (number == SYS_vfork) return true;
  constexpr auto kShares = static_cast<uint64_t>(CLONE_VM);
  if (number == SYS_clone) return (static_cast<uint64_t>(given[0]) & kShares) != 0 || given[1] != 0;
  if (number != SYS_clone3) return false;
  return (load_value(reinterpret_cast<const uint64_t*>(given[0])) & kShares) != 0;
}

// These change what the handler itself, or its return, is about: the child that shares this stack or has another one,
// the alternate stack that the return puts back, the thread-local memory.
bool is_of_the_place(long number, const CallArguments& given) {
  return shares_memory(number, given) || number == SYS_sigaltstack || number == SYS_arch_prctl;
}

void make_again(mcontext_t* registers) {
  registers->gregs[REG_RIP] -= kCallInstructionBytes;
  spw::detail::in_runtime.selector.store_relaxed(spw::detail::InRuntimeState::kPasses);
}

// What the return puts back.
void keep_mask(ucontext_t* context) {
  real().syscall(SYS_rt_sigprocmask, 0, nullptr, &context->uc_sigmask, kKernelMaskBytes);
}

void make_call(ucontext_t* context) {
  mcontext_t& registers = context->uc_mcontext;
  const long number = registers.gregs[REG_RAX];
  CallArguments given = {registers.gregs[REG_RDI], registers.gregs[REG_RSI], registers.gregs[REG_RDX],
                         registers.gregs[REG_R10], registers.gregs[REG_R8],  registers.gregs[REG_R9]};
  if (number == SYS_rt_sigreturn) {
    registers.gregs[REG_RIP] = g_return_from_handler;
    return;
  }
  if (is_of_the_place(number, given)) return make_again(&registers);
  const long result = system_call(number, given);
  registers.gregs[REG_RAX] = result == -1 ? -errno : result;
  if (number == SYS_rt_sigprocmask) keep_mask(context);
}

void on_system_call(int signal, siginfo_t* info, void* interrupted) {
  auto* context = static_cast<ucontext_t*>(interrupted);
  if (info->si_code != kSiCodeOfDispatch) return pass_fault_on(signal, info, interrupted);
  const int saved_errno = errno;
  if (info->si_arch == AUDIT_ARCH_X86_64)
    make_call(context);
  else
    make_again(&context->uc_mcontext);
  errno = saved_errno;
}

}  // namespace

namespace detail {

Atomic<bool> threads_serve_faults{false};
Atomic<bool> dispatches{false};

void dispatch_this_thread(bool returns_to_its_mask) {
  // The child of a vfork() has this memory, but no dispatch, and executes something else soon.
  if (!actions_are_ours()) return;
  spw::detail::InRuntimeState& state = spw::detail::in_runtime;
  state.is_dispatched.store_relaxed(true);
  // On a stack of the program's that is managed: the kernel ends the process where it cannot read the selector.
  if (is_managed(&state)) return;
  InRuntime guard;
  const int saved_errno = errno;
  sigset_t its, before;
  sigemptyset(&its);
  sigaddset(&its, SIGSYS);
  real().pthread_sigmask(SIG_UNBLOCK, &its, &before);
  const bool will_be_blocked = returns_to_its_mask && sigismember(&before, SIGSYS) == 1;
  if (!will_be_blocked && !platform::dispatch_calls_of_this_thread(g_libc, &state.selector))
    dispatches.store_relaxed(false);
  errno = saved_errno;
}

}  // namespace detail

Status prepare_dispatch() {
  static_assert(sizeof(spw::detail::InRuntimeState::selector) == 1);
  if (!platform::can_dispatch_calls()) return {};
  auto code = platform::code_around(reinterpret_cast<const void*>(real().syscall));
  if (!code) return code.status();
  g_libc = *code;
  if (Status status = share_fault_signal(SIGSYS, &on_system_call); !status) return status;
  KernelAction ours{};
  if (real().syscall(SYS_rt_sigaction, SIGSYS, nullptr, &ours, kKernelMaskBytes) != 0)
    return Status(errno, "cannot read the handler of SIGSYS");
  g_return_from_handler = reinterpret_cast<greg_t>(ours.restorer);
  g_is_prepared = true;
  return {};
}

bool may_dispatch() { return g_is_prepared; }

void threads_serve_faults_from_now_on() {
  detail::threads_serve_faults.store_relaxed(true);
  if (g_is_prepared) detail::dispatches.store_relaxed(true);
}

void dispatch_forked() {
  spw::detail::in_runtime.is_dispatched.store_relaxed(false);
  detail::threads_serve_faults.store_relaxed(false);
  detail::dispatches.store_relaxed(false);
}

}  // namespace spw::libc
