// The libaio engine. A completion interrupts nobody, which is why it comes first: io_uring's is work for the thread
// that submitted, and to that thread, which may be the program's, the kernel has it look like a signal. What then waits
// in epoll_wait(), semop() or sigtimedwait() gets EINTR though no signal came, and a write to a pipe may stop half way.
//
// Direct transfers are asynchronous. What the kernel would do within the call that submits, threads do that all engines
// share (engine_workers()): discards, syncs, and the transfers where start_times.h says so.
//
// A process with a context ends some 30 ms later than one without, since the kernel takes that long to take it apart.
// So an engine of whoever did not ask for libaio by name has those threads do the first kStepsWithout steps, too, which
// costs less than that; once the process has a context, they all take one.
//
// Invariant: results are there => completed_ is readable (except inside harvest()). The kernel signals it with every
//   completion once the result is in the ring; harvest() clears it *before* it takes results, and signals it again when
//   it may have left some. Where there is none, it clears only what has ended a sleep, so that no sleep ends twice for
//   nothing.
// Threads: issue() and harvest() by one thread at a time; wait()
// kicks and polls, beside them. Kickers take turns (issued_steps.h).
// The kernel's calls are made without libaio.so, which programs that are run as they are need not have.
// Limits: AioContext's. Who finds no room for a context later has the threads do all of it.
#pragma once

#include <optional>
#include <vector>

#include "base/atomic.h"
#include "platform/wake_fd.h"
#include "store/engine/aio_context.h"
#include "store/engine/engine.h"
#include "store/engine/issued_steps.h"
#include "store/engine/mailbox.h"
#include "store/engine/start_times.h"

namespace spw::store {

class AioEngine final : public IoEngine {
 public:
  static constexpr unsigned kStepsWithout = 8192;
  enum class Context : uint8_t { kAtOnce, kWhenItPays };

  // With a context at once: AioContext::take()'s errors.
  static Result<std::unique_ptr<IoEngine>> create(size_t depth, Context context);
  ~AioEngine() override;

  void issue(std::span<const RawIo> ios) override;
  void kick() override;
  size_t harvest(std::span<RawResult> out) override;
  void wait(uint64_t timeout_ns) override;
  void wake() override { wake_.wake(); }
  std::optional<Sleep> sleep() override;

 private:
  explicit AioEngine(size_t depth);
  Status take_context();
  bool has_context(size_t steps);
  void start(std::span<const RawIo> ios);
  bool by_workers(const RawIo& io, bool has_context, bool hands_on, bool is_alone) const;
  void submit(std::span<iocb*> controls);

  const size_t depth_;
  std::unique_ptr<AioContext> made_;      // who takes it may be in a page fault
  Atomic<AioContext*> context_{nullptr};  // the kicker sets it, once
  platform::WakeFd completed_;
  platform::WakeFd wake_;
  IssuedSteps<RawIo> issued_;
  // The kicker's.
  unsigned steps_without_ = 0;
  std::vector<iocb> controls_;
  std::vector<iocb*> batch_;
  std::vector<RawIo> for_workers_;
  StartTimes start_times_;
  // A kicker reads what a step points to before the kernel has it, and whoever harvests the step may then reuse that:
  // the kernel orders the two. Released by the one and acquired by the other, so that it can be seen here, too.
  Atomic<uint64_t> starts_{0};
  std::vector<io_event> events_;   // of one harvest()
  Atomic<bool> has_slept_{false};  // relaxed: somebody has slept, or is about to, since the last harvest()
  Mailbox done_;                   // what the workers did, and what was refused
};

}  // namespace spw::store
