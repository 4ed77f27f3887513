// The io_uring engine: one ring a queue, many steps with one system call, no kernel thread.
//
// Threads: issue() puts steps on a list, which whoever kicks moves to the submission ring: that is the kicker's, one at a time
// (kick_turn.h). harvest() touches the completion ring, in one thread at a time. wait() kicks, and touches neither ring: it polls the ring's
// descriptor, which is readable while completions are waiting, so it may run beside them.
// Limits: the submission ring has room for `depth` steps, the completion ring for twice as many, so neither overflows.
#pragma once

#include <liburing.h>

#include <mutex>
#include <vector>

#include "base/atomic.h"
#include "platform/wake_fd.h"
#include "store/engine/engine.h"
#include "store/engine/kick_turn.h"

namespace spw::store {

class UringEngine final : public Engine {
 public:
  // EPERM or ENOSYS where the kernel or a container forbids io_uring.
  static Result<std::unique_ptr<Engine>> create(size_t depth);
  ~UringEngine() override;

  void issue(std::span<const RawIo> ios) override;
  void kick() override;
  size_t harvest(std::span<RawResult> out) override;
  void wait(uint64_t timeout_ns) override;
  void wake() override { wake_.wake(); }

 private:
  explicit UringEngine(size_t depth);
  void start();
  void submit();

  io_uring ring_{};
  bool ring_is_open_ = false;
  platform::WakeFd wake_;
  std::mutex issued_mutex_;  // of issued_
  std::vector<RawIo> issued_;
  // Some are issued and not started. Set after issued_, and cleared before it is emptied.
  Atomic<bool> has_issued_{false};
  // The kicker's.
  KickTurn turn_;
  std::vector<RawIo> starting_;
  unsigned refusals_ = 0;  // of submissions, in a row
  // Steps are in the submission ring that the kernel had no memory to take: wait() must not sleep long, harvest() tries again.
  Atomic<bool> unsubmitted_{false};
};

}  // namespace spw::store
