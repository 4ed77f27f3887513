#include "platform/thread.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "base/atomic.h"
#include "base/check.h"
#include "base/in_runtime.h"

namespace spw::platform {

namespace {

Atomic<uint32_t> g_running{0};
thread_local bool t_is_counted = false;

void* run_body(void* body) {
  InRuntime guard;
  Thread::Running running;
  std::unique_ptr<std::function<void()>> own(static_cast<std::function<void()>*>(body));
  (*own)();
  return nullptr;
}

}  // namespace

Thread::Running::Running() : is_first_(!std::exchange(t_is_counted, true)) {
  if (is_first_) g_running.fetch_add_relaxed(1);
}

Thread::Running::~Running() {
  if (!is_first_) return;
  g_running.fetch_sub_relaxed(1);
  t_is_counted = false;
}

uint32_t Thread::running() { return g_running.load_relaxed(); }
void Thread::in_child() { g_running.store_relaxed(0); }

Result<Thread> Thread::start(std::function<void()> body) {
  auto own = std::make_unique<std::function<void()>>(std::move(body));
  sigset_t all, before;
  sigfillset(&all);
  // A fault of its own is not the program's business to block: blocked, it ends the process.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Thread started;
  const int error = pthread_create(&started.thread_, nullptr, &run_body, own.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return Status(error, "cannot start a thread");
  started.runs_ = true;
  (void)own.release();
  return started;
}

void Thread::prefer_short_slices(uint64_t slice_ns) {
  // struct sched_attr of linux/sched/types.h, which does not go together with libc's headers.
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
  } attributes{};
  attributes.size = sizeof attributes;
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0u) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.runtime_ns = slice_ns;
  (void)::syscall(SYS_sched_setattr, 0, &attributes, 0u);
}

void Thread::join() {
  if (!std::exchange(runs_, false)) return;
  SPW_CHECK(pthread_join(thread_, nullptr) == 0);
}

}  // namespace spw::platform
