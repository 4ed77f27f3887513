#include "store/memory_store.h"

#include <algorithm>
#include <cstring>

#include "store/engine/mailbox.h"
#include "store/engine/transfer_queue.h"

namespace spw::store {

namespace {

// Does each step as it is issued.
class MemoryEngine final : public IoEngine {
 public:
  MemoryEngine(size_t depth, MemoryStore& store) : store_(store), mailbox_(depth) {}
  void issue(std::span<const RawIo> ios) override {
    for (const RawIo& io : ios) mailbox_.put({io.slot, store_.run(io)});
  }
  size_t harvest(std::span<RawResult> out) override { return mailbox_.take(out); }
  void wait(uint64_t timeout_ns) override { mailbox_.wait(timeout_ns); }
  void wake() override { mailbox_.wake(); }
  std::optional<Sleep> sleep() override { return Sleep{-1, mailbox_.is_empty() ? UINT64_MAX : 0}; }

 private:
  MemoryStore& store_;
  Mailbox mailbox_;
};

}  // namespace

Result<std::unique_ptr<MemoryStore>> MemoryStore::create(uint64_t size_bytes, FaultPlan* faults) {
  std::unique_ptr<MemoryStore> store(new MemoryStore);
  auto memory = platform::map_anonymous(round_up(size_bytes, kMmuPageBytes) + kMaxBlockBytes);
  if (!memory) return memory.status();
  store->memory_ = std::move(*memory);
  store->target_.size_bytes = size_bytes;
  store->target_.alignment_bytes = kMmuPageBytes;
  store->target_.spill = true;
  store->target_.faults = faults;
  return store;
}

std::string MemoryStore::describe() const { return "memory:" + format_size(size_bytes()); }

Result<std::unique_ptr<IoQueue>> MemoryStore::open_queue(size_t depth) {
  auto engine = std::make_unique<MemoryEngine>(depth, *this);
  return std::unique_ptr<IoQueue>(std::make_unique<TransferQueue>(std::move(engine), target_, depth));
}

Status MemoryStore::transfer(Request& request) {
  Progress progress;
  int error = transfer_now(progress, request, target_, [this](const RawIo& io) { return run(io); });
  return error == 0 ? Status::ok() : transfer_failed(error, request, describe());
}

int64_t MemoryStore::run(const RawIo& io) {
  std::byte* at = memory_.data() + io.offset_bytes;
  if (io.op == Op::kSync) return 0;
  if (io.op == Op::kDiscard) return -platform::advise(at, io.bytes, platform::Advice::kDontNeed).error();
  for (uint32_t i = 0; i < io.segment_count; ++i) {
    const iovec& segment = io.segments[i];
    if (io.op == Op::kRead) std::memcpy(segment.iov_base, at, segment.iov_len);
    if (io.op == Op::kWrite) std::memcpy(at, segment.iov_base, segment.iov_len);
    at += segment.iov_len;
  }
  return static_cast<int64_t>(io.bytes);
}

}  // namespace spw::store
