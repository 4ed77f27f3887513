// The io_uring engine: one ring a queue, many steps with one system call, no kernel thread.
//
// Threads: issue() puts steps on a list, which whoever kicks moves to the submission ring:
// that is the kicker's, one at a time (issued_steps.h). harvest() touches the completion
// ring, in one thread at a time. wait() kicks, and touches neither ring: it polls the ring's
// descriptor, which is readable while completions are waiting, so it may run beside them.
// Limits: the submission ring has room for `depth` steps, the completion ring for twice as many, so neither overflows.
#pragma once

#include <liburing.h>

#include <optional>

#include "base/atomic.h"
#include "platform/async_contexts.h"
#include "platform/wake_fd.h"
#include "store/engine/engine.h"
#include "store/engine/issued_steps.h"
#include "store/engine/start_times.h"

namespace spw::store {

class UringEngine final : public IoEngine {
 public:
  // EPERM or ENOSYS where the kernel or a container forbids io_uring.
  static Result<std::unique_ptr<IoEngine>> create(size_t depth);
  ~UringEngine() override;

  void issue(std::span<const RawIo> ios) override;
  void kick() override;
  size_t harvest(std::span<RawResult> out) override;
  void wait(uint64_t timeout_ns) override;
  void wake() override { wake_.wake(); }
  std::optional<Sleep> sleep() override;

 private:
  explicit UringEngine(size_t depth) : issued_(depth) {}
  void start(std::span<const RawIo> ios);
  void submit();

  io_uring ring_{};
  bool ring_is_open_ = false;
  std::optional<platform::OwnAsyncContext> own_;
  platform::WakeFd wake_;
  IssuedSteps<RawIo> issued_;
  StartTimes start_times_;  // the kicker's
  unsigned refusals_ = 0;   // of submissions, in a row; the kicker's
  // A kicker reads what a step points to before the kernel has it, and whoever harvests the step may then reuse that:
  // the kernel orders the two. Released by the one and acquired by the other, so that it can be seen here, too.
  Atomic<uint64_t> starts_{0};
  // Steps are in the submission ring that the kernel had no memory to
  // take: wait() must not sleep long, harvest() tries again.
  Atomic<bool> unsubmitted_{false};
};

}  // namespace spw::store
