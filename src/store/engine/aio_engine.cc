#include "store/engine/aio_engine.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/need.h"

namespace spw::store {

namespace {

int or_error(long result) { return result < 0 ? -errno : static_cast<int>(result); }

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

AioEngine::AioEngine(size_t depth) : controls_(depth), events_(depth), issued_(depth), done_(depth) {
  batch_.reserve(depth);
}

Result<std::unique_ptr<IoEngine>> AioEngine::create(size_t depth) {
  std::unique_ptr<AioEngine> engine(new AioEngine(depth));
  auto completed = platform::WakeFd::create();
  if (!completed) return completed.status();
  engine->completed_ = std::move(*completed);
  auto wake = platform::WakeFd::create();
  if (!wake) return wake.status();
  engine->wake_ = std::move(*wake);
  if (int result = or_error(::syscall(SYS_io_setup, depth, &engine->context_)); result < 0)
    return Status(-result, "cannot set up asynchronous I/O (libaio)");
  engine->own_.emplace();
  return std::unique_ptr<IoEngine>(std::move(engine));
}

AioEngine::~AioEngine() {
  if (context_) ::syscall(SYS_io_destroy, context_);
}

void AioEngine::put_done(RawResult result) {
  done_.put(result);
  completed_.wake();
}

void AioEngine::issue(std::span<const RawIo> ios) {
  batch_.clear();
  for (const RawIo& io : ios) {
    if (io.op == Op::kDiscard || io.op == Op::kSync) {
      put_done({io.slot, run_io(io)});
      continue;
    }
    iocb& control = controls_[io.slot];
    control = control_of(io, completed_.fd());
    batch_.push_back(&control);
  }
  issued_.add(batch_);
}

void AioEngine::kick() {
  if (issued_.has_some()) issued_.kick([this](std::span<iocb*> controls) { start(controls); });
}

// io_submit stops at the first control block it cannot take and tells why only when that is the first one.
void AioEngine::start(std::span<iocb*> controls) {
  while (!controls.empty()) {
    int result = or_error(::syscall(SYS_io_submit, context_, controls.size(), controls.data()));
    if (result == -EINTR) continue;
    if (result <= 0) {
      put_done({static_cast<uint32_t>(controls[0] - controls_.data()), result == 0 ? -EAGAIN : result});
      result = 1;
    }
    controls = controls.subspan(static_cast<size_t>(result));
  }
}

size_t AioEngine::harvest(std::span<RawResult> out) {
  completed_.clear();
  size_t taken = done_.take(out);
  timespec at_once{};
  int count;
  do {
    auto room = static_cast<long>(std::min(out.size() - taken, events_.size()));
    count = or_error(::syscall(SYS_io_getevents, context_, 0, room, events_.data(), &at_once));
  } while (count == -EINTR);
  if (count < 0) cannot_go_on("ask for finished transfers (libaio)", -count);
  for (int i = 0; i < count; ++i) {
    const io_event& event = events_[static_cast<size_t>(i)];
    out[taken++] = {static_cast<uint32_t>(event.data), event.res};
  }
  if (taken == out.size()) completed_.wake();
  return taken;
}

void AioEngine::wait(uint64_t timeout_ns) {
  kick();
  wake_.wait(completed_.fd(), timeout_ns);
}

}  // namespace spw::store
