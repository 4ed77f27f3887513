#include "platform/thread.h"

#include <signal.h>

#include <memory>

#include "base/check.h"
#include "base/in_runtime.h"

namespace spw::platform {

namespace {

void* run_body(void* body) {
  InRuntime guard;
  std::unique_ptr<std::function<void()>> own(static_cast<std::function<void()>*>(body));
  (*own)();
  return nullptr;
}

}  // namespace

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

void Thread::join() {
  if (!std::exchange(runs_, false)) return;
  SPW_CHECK(pthread_join(thread_, nullptr) == 0);
}

}  // namespace spw::platform
