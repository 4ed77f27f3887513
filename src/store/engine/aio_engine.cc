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
    : depth_(depth), made_(AioContext::make()), issued_(depth), events_(depth), done_(depth, [this] {
        completed_.wake();
      }) {
  controls_.reserve(depth);
  batch_.reserve(depth);
  for_workers_.reserve(depth);
}

AioEngine::~AioEngine() {
  if (AioContext* const context = context_.load_relaxed()) AioContext::GiveBack()(context);
}

Result<std::unique_ptr<IoEngine>> AioEngine::create(size_t depth, Context context) {
  std::unique_ptr<AioEngine> engine(new AioEngine(depth));
  auto completed = platform::WakeFd::create();
  if (!completed) return completed.status();
  engine->completed_ = std::move(*completed);
  auto wake = platform::WakeFd::create();
  if (!wake) return wake.status();
  engine->wake_ = std::move(*wake);
  if (context == Context::kAtOnce)
    if (Status status = engine->take_context(); !status) return status;
  return std::unique_ptr<IoEngine>(std::move(engine));
}

Status AioEngine::take_context() {
  auto context = AioContext::take(depth_, &made_);
  if (!context) return context.status();
  context_.store_release(context->release());
  return {};
}

// Whether there is one for these steps, the next.
bool AioEngine::has_context(size_t steps) {
  constexpr unsigned kNever = ~0U;  // there was no room for one
  if (context_.load_relaxed() != nullptr) return true;
  if (steps_without_ == kNever) return false;
  steps_without_ += static_cast<unsigned>(steps);
  if (steps_without_ < kStepsWithout && !AioContext::is_one_there()) return false;
  if (take_context()) return true;
  steps_without_ = kNever;
  return false;
}

void AioEngine::issue(std::span<const RawIo> ios) { issued_.add(ios); }

void AioEngine::kick() {
  if (issued_.has_some()) issued_.kick([this](std::span<const RawIo> ios) { start(ios); });
}

bool AioEngine::by_workers(const RawIo& io, bool has_context, bool hands_on, bool is_alone) const {
  if (!has_context || io.op == Op::kDiscard || io.op == Op::kSync) return true;
  // Of several reads, each that this thread made would have the next one wait.
  return hands_on && !(is_alone && StartTimes::takes_own_time(io));
}

void AioEngine::start(std::span<const RawIo> ios) {
  if (ios.empty()) return;
  const bool is_there = has_context(ios.size()), hands_on = start_times_.hands_on();
  uint64_t bytes = 0;
  controls_.clear();
  for_workers_.clear();
  for (const RawIo& io : ios) {
    if (by_workers(io, is_there, hands_on, ios.size() == 1)) {
      for_workers_.push_back(io);
      continue;
    }
    bytes += io.bytes;
    controls_.push_back(control_of(io, completed_.fd()));
  }
  if (!for_workers_.empty()) engine_workers().submit(for_workers_, done_);
  if (controls_.empty()) return;
  batch_.clear();
  for (iocb& control : controls_) batch_.push_back(&control);
  starts_.store_release(starts_.load_relaxed() + 1);
  const uint64_t begin_ns = platform::monotonic_ns();
  submit(batch_);
  if (!hands_on) start_times_.note(batch_.size(), bytes, platform::monotonic_ns() - begin_ns);
}

// The kernel stops at the first it cannot take and tells why only when that is the first one.
void AioEngine::submit(std::span<iocb*> controls) {
  while (!controls.empty()) {
    int result = context_.load_relaxed()->submit(controls);
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
  AioContext* context = context_.load_acquire();
  const auto has_results = [&context] { return context != nullptr && context->may_have_results(); };
  if (!has_slept && !has_results() && done_.is_empty()) return 0;
  if (has_slept) has_slept_.store_relaxed(false);
  completed_.clear();
  // One that was taken in between may have announced a result, which has just been cleared away.
  context = context_.load_acquire();
  size_t taken = done_.take(out);
  int count = 0;
  while (context != nullptr) {
    const size_t room = std::min(out.size() - taken, events_.size());
    count = context->take_results({events_.data(), room});
    if (count != -EINTR) break;
  }
  if (count < 0) cannot_go_on("ask for finished transfers (libaio)", -count);
  (void)starts_.load_acquire();
  for (int i = 0; i < count; ++i) {
    const io_event& event = events_[static_cast<size_t>(i)];
    out[taken++] = {static_cast<uint32_t>(event.data), event.res};
  }
  if (taken == out.size() && (has_results() || !done_.is_empty())) completed_.wake();
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
