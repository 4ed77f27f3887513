// The libaio engine, for kernels and containers without io_uring. Transfers are asynchronous when they are direct;
// discards and syncs are done in the submitting thread.
//
// Invariant: results are there => completed_ is readable (except inside harvest()). The kernel signals it with every completion;
//   harvest() clears it *before* it takes results, and signals it again when it may have left some.
// Threads: issue() and harvest() by one thread at a time; wait()
// kicks and polls, beside them. Kickers take turns (issued_steps.h).
// The kernel's calls are made without libaio.so, which programs that are run as they are need not have.
// Limits: the kernel's fs.aio-max-nr, over all processes.
#pragma once

#include <linux/aio_abi.h>

#include <optional>
#include <vector>

#include "platform/async_contexts.h"
#include "platform/wake_fd.h"
#include "store/engine/engine.h"
#include "store/engine/issued_steps.h"
#include "store/engine/mailbox.h"

namespace spw::store {

class AioEngine final : public IoEngine {
 public:
  static Result<std::unique_ptr<IoEngine>> create(size_t depth);
  ~AioEngine() override;

  void issue(std::span<const RawIo> ios) override;
  void kick() override;
  size_t harvest(std::span<RawResult> out) override;
  void wait(uint64_t timeout_ns) override;
  void wake() override { wake_.wake(); }
  std::optional<Sleep> sleep() override { return Sleep{completed_.fd()}; }

 private:
  explicit AioEngine(size_t depth);
  void start(std::span<iocb*> controls);
  void put_done(RawResult result);

  aio_context_t context_ = 0;
  std::optional<platform::OwnAsyncContext> own_;
  platform::WakeFd completed_;
  platform::WakeFd wake_;
  std::vector<iocb> controls_;    // by slot
  std::vector<iocb*> batch_;      // of one issue()
  std::vector<io_event> events_;  // of one harvest()
  IssuedSteps<iocb*> issued_;
  Mailbox done_;  // of steps done at once, or refused
};

}  // namespace spw::store
