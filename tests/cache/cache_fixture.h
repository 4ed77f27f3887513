// A cache over one memory store, with a BlockSource that remembers which blocks have contents. For test programs of one
// source file: it tells the thread sanitizer what is meant to happen.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/units.h"
#include "cache/cache.h"
#include "store/fault_plan.h"
#include "store/memory_store.h"
#include "telemetry/counters.h"

namespace spw::cache {

inline constexpr uint64_t kBlocks = 1 << 16;

// Block b lies at offset b << shift of one store.
class IdentityBlocks final : public BlockSource {
 public:
  IdentityBlocks(store::Store& store, unsigned shift)
      : store_(store), shift_(shift), contents_(std::make_unique<Atomic<uint8_t>[]>(kBlocks)) {}
  Backing locate_for_fill(BlockId block) override {
    if (block.value >= kBlocks) return {};
    return {&store_, block.value << shift_, contents_[block.value].load_acquire() != 0};
  }
  Backing locate_for_writeback(BlockId block) override {
    if (block.value >= kBlocks) return {};
    return {&store_, block.value << shift_, true};
  }
  void written_back(BlockId block, const store::Store*) override { contents_[block.value].store_release(1); }
  bool is_buffered_file(BlockId) override { return is_buffered_file_; }
  bool is_anonymous(BlockId) override { return is_anonymous_; }
  // Before the first block is cached.
  void be_buffered_file() { is_buffered_file_ = true; }
  void be_anonymous() { is_anonymous_ = true; }
  void set_contents(BlockId block, bool has) { contents_[block.value].store_release(has); }

 private:
  store::Store& store_;
  const unsigned shift_;
  std::unique_ptr<Atomic<uint8_t>[]> contents_;
  bool is_buffered_file_ = false;
  bool is_anonymous_ = false;
};

// How much counters moved.
class CounterDelta {
 public:
  CounterDelta() : before_(telemetry::read_totals()) {}
  uint64_t operator()(telemetry::Counter c) const {
    return telemetry::total(telemetry::read_totals(), c) - telemetry::total(before_, c);
  }

 private:
  telemetry::Totals before_;
};

// A cache over frames of a test's own. Its errors are the test's.
inline std::unique_ptr<SharedCache> cache_over(const Options& options, BlockSource& blocks,
                                               std::unique_ptr<FrameSource> frames) {
  auto made = SharedCache::create(
      options, blocks, [](void*, const Status& status) { FAIL() << status.message(); }, nullptr,
      std::move(frames));
  SPW_CHECK(made.is_ok());
  return std::move(*made);
}

class CacheFixture {
 public:
  explicit CacheFixture(Options options, const std::string& faults = "") : options_(options) {
    if (!faults.empty()) mend_with(faults);
    auto memory = store::MemoryStore::create(kBlocks << options.block_shift, &plan_);
    SPW_CHECK(memory.is_ok());
    store_ = std::move(*memory);
    blocks_ = std::make_unique<IdentityBlocks>(*store_, options.block_shift);
    auto made = SharedCache::create(options, *blocks_, &CacheFixture::note_error, this);
    SPW_CHECK(made.is_ok());
    cache_ = std::move(*made);
    client_ = *cache_->open_client();
  }
  ~CacheFixture() {
    if (!cache_) return;
    cache_->check_invariants();
    cache_->close_client(client_);
  }

  SharedCache& cache() { return *cache_; }
  Client& client() { return *client_; }
  IdentityBlocks& blocks() { return *blocks_; }
  store::Store& store() { return *store_; }
  store::FaultPlan& plan() { return plan_; }
  void mend_with(const std::string& faults) { SPW_CHECK(plan_.add(faults).is_ok()); }
  size_t block_bytes() const { return size_t{1} << options_.block_shift; }
  std::vector<Status> errors() {
    std::lock_guard lock(mutex_);
    return errors_;
  }

  Status write(uint64_t block, uint64_t value, Access access = Access::kWrite) {
    Pin pin;
    if (Status status = cache_->pin(*client_, BlockId(block), access, &pin); !status) return status;
    for (size_t i = 0; i < block_bytes(); i += 512) std::memcpy(pin.data + i, &value, sizeof value);
    cache_->unpin(*client_, pin.frame);
    return Status::ok();
  }
  uint64_t read(uint64_t block) {
    Pin pin;
    Status status = cache_->pin(*client_, BlockId(block), Access::kRead, &pin);
    EXPECT_TRUE(status.is_ok()) << status.message();
    if (!status) return UINT64_MAX;
    uint64_t value, other;
    std::memcpy(&value, pin.data, sizeof value);
    for (size_t i = 512; i < block_bytes(); i += 512) {
      std::memcpy(&other, pin.data + i, sizeof other);
      EXPECT_EQ(other, value) << "block " << block << " byte " << i;
    }
    cache_->unpin(*client_, pin.frame);
    return value;
  }
  // What the store itself holds at a block's place.
  uint64_t stored(uint64_t block) {
    alignas(4096) static thread_local std::byte buffer[4096];
    store::Request request;
    request.offset_bytes = block << options_.block_shift;
    request.segment_count = 1;
    request.segments[0] = {buffer, sizeof buffer};
    SPW_CHECK(store_->transfer(request).is_ok());
    uint64_t value;
    std::memcpy(&value, buffer, sizeof value);
    return value;
  }
  void store_directly(uint64_t block, uint64_t value) {
    std::vector<std::byte> memory(block_bytes() + 4096);
    void* raw = memory.data();
    size_t space = memory.size();
    auto* data = static_cast<std::byte*>(std::align(4096, block_bytes(), raw, space));
    for (size_t i = 0; i < block_bytes(); i += 512) std::memcpy(data + i, &value, sizeof value);
    store::Request request;
    request.op = store::Op::kWrite;
    request.offset_bytes = block << options_.block_shift;
    request.segment_count = 1;
    request.segments[0] = {data, block_bytes()};
    SPW_CHECK(store_->transfer(request).is_ok());
    blocks_->set_contents(BlockId(block), true);
  }

 private:
  static void note_error(void* context, const Status& status) {
    auto* self = static_cast<CacheFixture*>(context);
    std::lock_guard lock(self->mutex_);
    self->errors_.push_back(status);
  }

  Options options_;
  store::FaultPlan plan_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<IdentityBlocks> blocks_;
  std::unique_ptr<SharedCache> cache_;
  Client* client_ = nullptr;
  std::mutex mutex_;
  std::vector<Status> errors_;
};

// The ways in which a partition can be organised and served.
struct Kind {
  const char* name;
  Delegation delegation;
  const char* policy;
};
inline constexpr Kind kCombining{"combining", Delegation::kCombining, "clock"};
inline constexpr Kind kDedicated{"dedicated", Delegation::kDedicated, "clock"};
inline constexpr Kind kPageSets{"page_sets", Delegation::kCombining, "sa-nrlfu"};

inline Options small_cache(uint32_t frames, Kind kind = kCombining) {
  Options options;
  options.frame_count = frames;
  options.delegation = kind.delegation;
  options.policy = kind.policy;
  options.readahead_blocks_max = 0;
  return options;
}

inline Options one_partition(uint32_t frames, Kind kind = kCombining) {
  Options options = small_cache(frames, kind);
  options.partitions = 1;
  return options;
}

inline std::string kind_name(const testing::TestParamInfo<Kind>& info) { return info.param.name; }
inline void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

}  // namespace spw::cache
