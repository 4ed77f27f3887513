#include "platform/end_request.h"

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>
#include <new>
#include <utility>

#include "base/units.h"

namespace spw::platform {

namespace {

constexpr uint64_t kStackBytes = 16 * kKiB;
constexpr timespec kConfirmationWait = {.tv_sec = 1, .tv_nsec = 0};

// libc's own would store to errno, which is another thread's where this is called. An error is -errno.
long bare_call(long number, const void* first, long second, long third, const void* fourth) {
  long result = number;
  register const void* r10 asm("r10") = fourth;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(first), "S"(second), "d"(third), "r"(r10)
               : "rcx", "r11", "memory");
  return result;
}

}  // namespace

// Of a thread whose thread-local storage is that of the one that started it, and may be gone: no stack
// protector, and nothing called that libc or a sanitizer has a hand in.
__attribute__((no_stack_protector)) int EndRequest::run_watcher(void* request) {
  auto* own = static_cast<EndRequest*>(request);
  const void* word = own->state_.address();
  long waited = 0;
  do {
    waited = bare_call(SYS_futex, word, FUTEX_WAIT, kNone, nullptr);
  } while (waited == 0 || waited == -EINTR);
  if (waited != -EAGAIN) return 0;  // the memory is gone, so nobody can ask
  bare_call(SYS_futex, word, FUTEX_WAIT, kAsked, &kConfirmationWait);
  const auto code = static_cast<uintptr_t>(static_cast<unsigned>(own->exit_code_));
  bare_call(SYS_exit_group, reinterpret_cast<const void*>(code), 0, 0, nullptr);
  return 0;
}

EndRequest::EndRequest(Mapping memory, Mapping stack, int exit_code)
    : process_(::getpid()), exit_code_(exit_code), memory_(std::move(memory)), stack_(std::move(stack)) {}

Result<EndRequest*> EndRequest::create(int exit_code) {
  auto memory = map_shared(sizeof(EndRequest));
  if (!memory) return memory.status();
  auto stack = map_anonymous(kStackBytes);
  if (!stack) return stack.status();
  void* place = memory->data();
  auto* request = new (place) EndRequest(std::move(*memory), std::move(*stack), exit_code);
  if (Status status = request->start_watcher(); !status) {
    const Mapping freed_last = std::move(request->memory_);
    request->~EndRequest();
    return status;
  }
  return request;
}

Status EndRequest::start_watcher() {
  // The program's signals are none of its business, libc's own neither.
  constexpr uint64_t kAllSignals = ~uint64_t{0};
  uint64_t before = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &kAllSignals, &before, sizeof before);
  constexpr int kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
  const int started = ::clone(&run_watcher, stack_.data() + kStackBytes, kThread, this);
  const int error = errno;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
  return started < 0 ? Status(error, "cannot start a thread") : Status::ok();
}

bool EndRequest::ask() {
  uint32_t none = kNone;
  const bool is_first = state_.cas_strong_acq_rel(none, kAsked);
  if (is_first) wake();
  return is_first;
}

void EndRequest::confirm() {
  state_.store_release(kFinal);
  wake();
}

// Not of the private kind, which sleepers in other processes do not hear.
void EndRequest::wake() { ::syscall(SYS_futex, state_.address(), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

void EndRequest::wait_for_end() const {
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, process_, 0));
  if (process < 0) return;  // it has ended
  pollfd ended{.fd = process, .events = POLLIN, .revents = 0};
  while (::syscall(SYS_poll, &ended, 1, kEndWaitMsMax) < 0 && errno == EINTR) continue;
  ::syscall(SYS_close, process);
}

}  // namespace spw::platform
