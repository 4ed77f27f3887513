#include "store/rbd_store.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <vector>

#include "base/atomic.h"
#include "base/in_runtime.h"
#include "store/claim/claim.h"
#include "store/engine/mailbox.h"
#include "store/engine/progress.h"
#include "store/engine/transfer_queue.h"
#include "store/rbd/rbd_image.h"

namespace spw::store {

namespace {

// librbd makes a copy of what is written, and has what it reads in memory of its own first.
constexpr uint64_t kBytesUnderWayMax = 8 * kMiB;

class RbdStore final : public Store {
 public:
  RbdStore(std::unique_ptr<RbdImage> image, FaultPlan* faults) : image_(std::move(image)) {
    target_.size_bytes = image_->size_bytes();
    target_.alignment_bytes = kMmuPageBytes;
    target_.faults = faults;
  }

  std::string describe() const override;
  uint64_t size_bytes() const override { return target_.size_bytes; }
  uint64_t alignment_bytes() const override { return target_.alignment_bytes; }
  Result<std::unique_ptr<IoQueue>> open_queue(size_t depth) override;
  Status transfer(Request& request) override;
  // Room is the cluster's own affair.
  Status reserve(uint64_t, uint64_t) override { return Status::ok(); }

  // For the store's engine: the steps' results go to `mailbox`.
  void submit(std::span<const RawIo> ios, Mailbox& mailbox);
  Target& target() { return target_; }

 private:
  // Gone with its result.
  struct Step {
    RbdStore& store;
    Mailbox& mailbox;
    RawIo io;
    uint64_t bytes = 0;      // to be moved: those inside the image
    std::vector<iovec> cut;  // those of a step that sticks out; librbd reads them until it is over
  };

  std::unique_ptr<Step> step_of(const RawIo& io, Mailbox& mailbox);
  bool takes(const Step& step) const;
  void start(std::unique_ptr<Step> step);
  int send(Step& step, rbd_completion_t completion) const;
  void finish(std::unique_ptr<Step> step, int64_t result);
  void start_waiting();
  static void is_over(rbd_completion_t completion, void* step);

  std::unique_ptr<RbdImage> image_;
  Target target_;
  Atomic<int> last_error_{0};
  std::mutex mutex_;
  uint64_t bytes_under_way_ = 0;               // of librbd's steps
  std::deque<std::unique_ptr<Step>> waiting_;  // for fewer bytes under way
};

// The first `bytes` of a step's segments.
std::vector<iovec> beginning_of(const RawIo& io, uint64_t bytes) {
  std::vector<iovec> kept;
  for (uint32_t i = 0; i < io.segment_count && bytes > 0; ++i) {
    const uint64_t length = std::min<uint64_t>(io.segments[i].iov_len, bytes);
    kept.push_back({io.segments[i].iov_base, length});
    bytes -= length;
  }
  return kept;
}

std::string RbdStore::describe() const {
  const RbdAddress& address = image_->address();
  std::string said = image_->text() + " (objects of " + format_size(image_->object_bytes()) +
                     (address.read_only ? ", read-only" : "") + begins_at(target_);
  switch (last_error_.load_relaxed()) {
    case ESHUTDOWN:
      said += ", and another client has broken its lock, or the cluster shut this one out";
      break;
    case ETIMEDOUT:
      said += ", and the cluster has not answered for " + std::to_string(address.timeout_seconds) +
              " s; see that it is healthy and that client." + address.id + " may still use it";
      break;
    default:
      break;
  }
  return said + ")";
}

void RbdStore::submit(std::span<const RawIo> ios, Mailbox& mailbox) {
  for (const RawIo& io : ios) {
    auto step = step_of(io, mailbox);
    {
      std::lock_guard lock(mutex_);
      if (!waiting_.empty() || !takes(*step)) {
        waiting_.push_back(std::move(step));
        continue;
      }
      bytes_under_way_ += step->bytes;
    }
    start(std::move(step));
  }
}

// Behind the image's end there is nothing to be read or cleared.
std::unique_ptr<RbdStore::Step> RbdStore::step_of(const RawIo& io, Mailbox& mailbox) {
  auto step = std::make_unique<Step>(*this, mailbox, io);
  if (io.op != Op::kRead && io.op != Op::kWrite) return step;
  step->bytes = std::min(io.bytes, image_->size_bytes() - io.offset_bytes);
  if (step->bytes < io.bytes) step->cut = beginning_of(io, step->bytes);
  return step;
}

// With the lock. What alone is more is let through alone.
bool RbdStore::takes(const Step& step) const {
  return bytes_under_way_ == 0 || bytes_under_way_ + step.bytes <= kBytesUnderWayMax;
}

void RbdStore::start(std::unique_ptr<Step> step) {
  const Librbd& lib = image_->lib();
  rbd_completion_t completion = nullptr;
  if (const int error = -lib.rbd.aio_create_completion(step.get(), &is_over, &completion); error != 0)
    return finish(std::move(step), -error);
  // From the call on, it is is_over()'s.
  Step* const sent = step.release();
  const int error = -send(*sent, completion);
  if (error == 0) return;
  lib.rbd.aio_release(completion);
  finish(std::unique_ptr<Step>(sent), -error);
}

int RbdStore::send(Step& step, rbd_completion_t completion) const {
  const Librbd& lib = image_->lib();
  const RawIo& io = step.io;
  rbd_image_t image = image_->get();
  const bool changes_data = io.op == Op::kWrite || io.op == Op::kDiscard;
  if (changes_data && image_->address().read_only) return -EROFS;
  if (io.op == Op::kSync) return lib.rbd.aio_flush(image, completion);
  if (io.op == Op::kDiscard) {
    const uint64_t bytes = std::min(io.bytes, image_->size_bytes() - io.offset_bytes);
    return lib.rbd.aio_write_zeroes(image, io.offset_bytes, bytes, completion, 0, 0);
  }
  const iovec* const segments = step.cut.empty() ? io.segments : step.cut.data();
  const size_t count = step.cut.empty() ? io.segment_count : step.cut.size();
  const auto call = io.op == Op::kRead ? lib.rbd.aio_readv : lib.rbd.aio_writev;
  return call(image, segments, static_cast<int>(count), io.offset_bytes, completion);
}

// The mailbox comes last: with the last result of all, the store may go.
void RbdStore::finish(std::unique_ptr<Step> step, int64_t result) {
  if (result < 0) last_error_.store_relaxed(static_cast<int>(-result));
  {
    std::lock_guard lock(mutex_);
    bytes_under_way_ -= step->bytes;
  }
  start_waiting();
  step->mailbox.put({step->io.slot, result < 0 ? result : static_cast<int64_t>(step->bytes)});
}

void RbdStore::start_waiting() {
  while (true) {
    std::unique_ptr<Step> next;
    {
      std::lock_guard lock(mutex_);
      if (waiting_.empty() || !takes(*waiting_.front())) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
      bytes_under_way_ += next->bytes;
    }
    start(std::move(next));
  }
}

// librbd's callback, in a thread of its own.
void RbdStore::is_over(rbd_completion_t completion, void* of_step) {
  InRuntime guard;
  std::unique_ptr<Step> step(static_cast<Step*>(of_step));
  RbdStore& store = step->store;
  const int64_t result = store.image_->lib().rbd.aio_get_return_value(completion);
  store.image_->lib().rbd.aio_release(completion);
  store.finish(std::move(step), result);
}

Result<std::unique_ptr<IoQueue>> RbdStore::open_queue(size_t depth) {
  auto engine = std::make_unique<MailboxEngine<RbdStore>>(depth, *this);
  return std::unique_ptr<IoQueue>(std::make_unique<TransferQueue>(std::move(engine), target_, depth));
}

Status RbdStore::transfer(Request& request) {
  auto run = [&](const RawIo& io) { return done_by(*this, io); };
  Progress progress;
  const int error = transfer_now(progress, request, target_, run);
  return error == 0 ? Status::ok() : transfer_failed(error, request, describe());
}

Result<std::unique_ptr<RbdStore>> open_image(const RbdAddress& address, FaultPlan* faults) {
  auto lib = Librbd::load();
  if (!lib) return lib.status();
  auto image = RbdImage::open(*lib, address);
  if (!image) return image.status();
  return std::make_unique<RbdStore>(std::move(*image), faults);
}

Result<std::unique_ptr<Store>> make_image(const RbdAddress& address, FaultPlan* faults,
                                          const ImageMade& made) {
  auto lib = Librbd::load();
  if (!lib) return lib.status();
  auto image = RbdImage::make_to_spill(*lib, address,
                                       [&](const std::string& name) { return made && made(address, name); });
  if (!image) return image.status();
  return std::unique_ptr<Store>(std::make_unique<RbdStore>(std::move(*image), faults));
}

}  // namespace

Result<std::unique_ptr<Store>> open_rbd(const RbdAddress& address, FaultPlan* faults) {
  if (address.image.empty())
    return Status::sentence(EINVAL, address.text + ": an image of a Ceph cluster is named rbd:POOL/IMAGE");
  auto store = open_image(address, faults);
  if (!store) return store.status();
  return std::unique_ptr<Store>(std::move(*store));
}

Result<std::unique_ptr<Store>> open_rbd_to_spill(const RbdAddress& address, FaultPlan* faults,
                                                 const ImageMade& made) {
  if (address.image.empty()) return make_image(address, faults, made);
  if (address.read_only)
    return Status::sentence(EROFS, address.text + ": with mode=read nothing can be spilled there");
  auto store = open_image(address, faults);
  if (!store) return store.status();
  if (Status status = claim(**store, (*store)->target(), address.text, address.overwrite); !status)
    return status;
  return std::unique_ptr<Store>(std::move(*store));
}

}  // namespace spw::store
