#include "store/engine/uring_engine.h"

#include <fcntl.h>
#include <linux/falloc.h>

#include <algorithm>

#include "base/address_reuse.h"
#include "base/check.h"
#include "base/need.h"
#include "base/units.h"
#include "platform/own_descriptors.h"
#include "platform/time.h"

namespace spw::store {

namespace {

constexpr unsigned kRefusalsMax = 10'000, kOtherRefusalsMax = 10;
constexpr uint64_t kRefusedWaitNs = 1'000'000;

uint64_t bytes_moved(const RawIo& io) { return io.op == Op::kRead || io.op == Op::kWrite ? io.bytes : 0; }

void prepare(io_uring_sqe* sqe, const RawIo& io) {
  switch (io.op) {
    case Op::kRead:
      if (io.segment_count == 1)
        io_uring_prep_read(sqe, io.fd, io.segments[0].iov_base, static_cast<unsigned>(io.segments[0].iov_len),
                           io.offset_bytes);
      else
        io_uring_prep_readv(sqe, io.fd, io.segments, io.segment_count, io.offset_bytes);
      break;
    case Op::kWrite:
      io_uring_prep_writev(sqe, io.fd, io.segments, io.segment_count, io.offset_bytes);
      break;
    case Op::kDiscard:
      io_uring_prep_fallocate(sqe, io.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                              static_cast<off_t>(io.offset_bytes), static_cast<off_t>(io.bytes));
      break;
    case Op::kSync:
      io_uring_prep_fsync(sqe, io.fd, IORING_FSYNC_DATASYNC);
      break;
  }
  sqe->user_data = io.slot;
}

}  // namespace

Result<std::unique_ptr<IoEngine>> UringEngine::create(size_t depth) {
  std::unique_ptr<UringEngine> engine(new UringEngine(depth));
  auto wake = platform::WakeFd::create();
  if (!wake) return wake.status();
  engine->wake_ = std::move(*wake);
  int result = io_uring_queue_init(static_cast<unsigned>(depth), &engine->ring_, 0);
  if (result < 0) return Status(-result, "cannot set up an io_uring");
  got_addresses();
  engine->ring_is_open_ = true;
  engine->ring_.ring_fd = engine->ring_.enter_ring_fd = platform::take_descriptor(engine->ring_.ring_fd);
  engine->own_.emplace();
  return std::unique_ptr<IoEngine>(std::move(engine));
}

UringEngine::~UringEngine() {
  if (!ring_is_open_) return;
  platform::drop_descriptor(ring_.ring_fd);
  leaves_addresses();
  io_uring_queue_exit(&ring_);
}

void UringEngine::issue(std::span<const RawIo> ios) { issued_.add(ios); }

void UringEngine::kick() {
  if (issued_.has_some() || unsubmitted_.load_relaxed())
    issued_.kick([this](std::span<const RawIo> ios) { start(ios); });
}

void UringEngine::start(std::span<const RawIo> ios) {
  if (ios.empty()) return submit();
  const bool hands_on = start_times_.hands_on();
  uint64_t bytes = 0;
  for (const RawIo& io : ios) {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    SPW_CHECK(sqe != nullptr);  // the queue keeps to its depth
    prepare(sqe, io);
    const uint64_t its_bytes = bytes_moved(io);
    bytes += its_bytes;
    if (hands_on && !StartTimes::takes_own_time(io)) sqe->flags |= IOSQE_ASYNC;
  }
  starts_.store_release(starts_.load_relaxed() + 1);
  if (hands_on) return submit();
  const uint64_t begin_ns = platform::monotonic_ns();
  submit();
  start_times_.note(ios.size(), bytes, platform::monotonic_ns() - begin_ns);
}

void UringEngine::submit() {
  while (io_uring_sq_ready(&ring_) > 0) {
    int result = io_uring_submit(&ring_);
    if (result == -EINTR) continue;
    if (result > 0) {
      refusals_ = 0;
      continue;
    }
    // Out of memory for the moment (EAGAIN, EBUSY): the steps stay in
    // the ring. Who waits has not known that it must not for long.
    const bool lacks_memory = result == -EAGAIN || result == -EBUSY || result == -ENOMEM || result == 0;
    if (++refusals_ >= (lacks_memory ? kRefusalsMax : kOtherRefusalsMax))
      cannot_go_on("submit transfers to io_uring", result == 0 ? EAGAIN : -result);
    if (!unsubmitted_.exchange_relaxed(true)) wake_.wake();
    return;
  }
  unsubmitted_.store_relaxed(false);
}

size_t UringEngine::harvest(std::span<RawResult> out) {
  if (unsubmitted_.load_relaxed()) kick();
  size_t taken = 0;
  unsigned head;
  io_uring_cqe* cqe;
  io_uring_for_each_cqe(&ring_, head, cqe) {
    if (taken == out.size()) break;
    out[taken++] = {static_cast<uint32_t>(cqe->user_data), cqe->res};
  }
  (void)starts_.load_acquire();
  io_uring_cq_advance(&ring_, static_cast<unsigned>(taken));
  return taken;
}

std::optional<Sleep> UringEngine::sleep() {
  return Sleep{ring_.ring_fd, unsubmitted_.load_relaxed() ? kRefusedWaitNs : UINT64_MAX};
}

void UringEngine::wait(uint64_t timeout_ns) {
  kick();
  wake_.wait(ring_.ring_fd, unsubmitted_.load_relaxed() ? std::min(timeout_ns, kRefusedWaitNs) : timeout_ns);
}

}  // namespace spw::store
