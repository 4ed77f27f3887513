#include "store/engine/aio_engine.h"

#include <errno.h>
#include <string.h>

#include <algorithm>

#include "base/need.h"
#include "platform/time.h"
#include "store/engine/thread_engine.h"

namespace spw::store {

namespace {

iocb control_of(const RawIo& io, int completed_fd) {
  iocb control;
  memset(&control, 0, sizeof control);
  control.aio_data = io.slot;
  control.aio_lio_opcode = io.op == Op::kRead ? IOCB_CMD_PREADV : IOCB_CMD_PWRITEV;
  control.aio_fildes = static_cast<uint32_t>(io.fd);
  control.aio_buf = reinterpret_cast<uintptr_t>(io.segments);
  control.aio_nbytes = io.segment_count;
  control.aio_offset = static_cast<int64_t>(io.offset_bytes);
  control.aio_flags = IOCB_FLAG_RESFD;
  control.aio_resfd = static_cast<uint32_t>(completed_fd);
  return control;
}

}  // namespace

AioEngine::AioEngine(size_t depth)
    : issued_(depth), events_(depth), done_(depth, [this] { completed_.wake(); }) {
  controls_.reserve(depth);
  batch_.reserve(depth);
  for_workers_.reserve(depth);
}

Result<std::unique_ptr<IoEngine>> AioEngine::create(size_t depth) {
  std::unique_ptr<AioEngine> engine(new AioEngine(depth));
  auto completed = platform::WakeFd::create();
  if (!completed) return completed.status();
  engine->completed_ = std::move(*completed);
  auto wake = platform::WakeFd::create();
  if (!wake) return wake.status();
  engine->wake_ = std::move(*wake);
  auto context = AioContext::take(depth);
  if (!context) return context.status();
  engine->context_ = std::move(*context);
  return std::unique_ptr<IoEngine>(std::move(engine));
}

void AioEngine::issue(std::span<const RawIo> ios) { issued_.add(ios); }

void AioEngine::kick() {
  if (issued_.has_some()) issued_.kick([this](std::span<const RawIo> ios) { start(ios); });
}

void AioEngine::start(std::span<const RawIo> ios) {
  if (ios.empty()) return;
  const bool hands_on = start_times_.hands_on();
  uint64_t bytes = 0;
  controls_.clear();
  for_workers_.clear();
  for (const RawIo& io : ios) {
    // Of several reads, each that this thread made would have the next one wait.
    const bool takes_own_time = ios.size() == 1 && StartTimes::takes_own_time(io);
    if (io.op == Op::kDiscard || io.op == Op::kSync || (hands_on && !takes_own_time)) {
      for_workers_.push_back(io);
      continue;
    }
    bytes += io.bytes;
    controls_.push_back(control_of(io, completed_.fd()));
  }
  if (!for_workers_.empty()) engine_workers().submit(for_workers_, done_);
  batch_.clear();
  for (iocb& control : controls_) batch_.push_back(&control);
  starts_.store_release(starts_.load_relaxed() + 1);
  const uint64_t begin_ns = platform::monotonic_ns();
  submit(batch_);
  if (!hands_on && !batch_.empty())
    start_times_.note(batch_.size(), bytes, platform::monotonic_ns() - begin_ns);
}

// The kernel stops at the first it cannot take and tells why only when that is the first one.
void AioEngine::submit(std::span<iocb*> controls) {
  while (!controls.empty()) {
    int result = context_->submit(controls);
    if (result == -EINTR) continue;
    if (result <= 0) {
      done_.put({static_cast<uint32_t>(controls[0]->aio_data), result == 0 ? -EAGAIN : result});
      result = 1;
    }
    controls = controls.subspan(static_cast<size_t>(result));
  }
}

size_t AioEngine::harvest(std::span<RawResult> out) {
  const bool has_slept = has_slept_.load_relaxed();
  if (!has_slept && !context_->may_have_results() && done_.is_empty()) return 0;
  if (has_slept) has_slept_.store_relaxed(false);
  completed_.clear();
  size_t taken = done_.take(out);
  int count;
  do {
    const size_t room = std::min(out.size() - taken, events_.size());
    count = context_->take_results({events_.data(), room});
  } while (count == -EINTR);
  if (count < 0) cannot_go_on("ask for finished transfers (libaio)", -count);
  (void)starts_.load_acquire();
  for (int i = 0; i < count; ++i) {
    const io_event& event = events_[static_cast<size_t>(i)];
    out[taken++] = {static_cast<uint32_t>(event.data), event.res};
  }
  if (taken == out.size() && (context_->may_have_results() || !done_.is_empty())) completed_.wake();
  return taken;
}

std::optional<Sleep> AioEngine::sleep() {
  has_slept_.store_relaxed(true);
  return Sleep{completed_.fd()};
}

void AioEngine::wait(uint64_t timeout_ns) {
  kick();
  has_slept_.store_relaxed(true);
  wake_.wait(completed_.fd(), timeout_ns);
}

}  // namespace spw::store
