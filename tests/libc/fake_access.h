// Managed memory for tests of the interposed functions: 4 KiB blocks in frames in random order with an inaccessible
// page behind most, so that whoever runs over a block's edge faults or reads another block's bytes.
//
// kOverwrite on a block that is wholly covered and not pinned fills it with 0xEE first, as a cache that does not read
// it would leave anything there. Windows are counted: a thread holds at most kWindowsPerThread.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "../region/fakes.h"
#include "access/context.h"
#include "base/rng.h"
#include "libc/alloc/rules.h"

namespace spw::testing {

inline constexpr uint64_t kFakeBlock = 4096;

class FakeAccess final : public access::ManagedAccess {
 public:
  static constexpr size_t kFrames = 65536;
  static constexpr size_t kGuardedFrames = 8192;  // the kernel limits the number of mappings

  FakeAccess() {
    void* at = mmap(nullptr, kFrames * 2 * kFakeBlock, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    memory_ = static_cast<std::byte*>(at);
    Rng rng(99);
    for (size_t i = 0; i < kGuardedFrames; ++i)
      mprotect(memory_ + (2 * i + 1) * kFakeBlock, kFakeBlock, PROT_NONE);
    // Guarded frames are handed out first, each kind in random order.
    for (size_t i = kFrames; i-- > 0;) free_.push_back(i);
    for (size_t i = kFrames - kGuardedFrames; i > 1; --i) std::swap(free_[i - 1], free_[rng.below(i)]);
    for (size_t i = kGuardedFrames; i > 1; --i)
      std::swap(free_[kFrames - i], free_[kFrames - i + rng.below(i)]);
  }
  ~FakeAccess() override {
    EXPECT_EQ(pinned_, 0);
    munmap(memory_, kFrames * 2 * kFakeBlock);
  }

  // Where contents come from and go to; nullptr: everything begins as zeros.
  cache::BlockSource* source = nullptr;

  access::Window pin(uintptr_t address, size_t max_bytes, cache::Access access) override {
    std::lock_guard lock(mutex_);
    EXPECT_GT(max_bytes, 0u);
    EXPECT_LE(++windows_here(), static_cast<int>(access::kWindowsPerThread));
    ++pinned_;
    uint64_t block = address / kFakeBlock, offset = address % kFakeBlock;
    Frame& frame = frame_of(block);
    bool whole = offset == 0 && max_bytes >= kFakeBlock;
    if (access == cache::Access::kOverwrite && whole && frame.pins == 0) memset(frame.data, 0xEE, kFakeBlock);
    ++frame.pins;
    frame.dirty |= access != cache::Access::kRead;
    blocks_[frame.index] = block;
    return {frame.data + offset, std::min<size_t>(max_bytes, kFakeBlock - offset), FrameId(frame.index)};
  }
  void unpin(const access::Window& window) override {
    std::lock_guard lock(mutex_);
    --windows_here();
    --pinned_;
    Frame& frame = frames_.at(blocks_.at(window.frame.value));
    EXPECT_GE(--frame.pins, 0);
  }

  // As the cache would: the blocks are zero when next pinned.
  void discard(uint64_t first_block, uint64_t count) {
    std::lock_guard lock(mutex_);
    auto it = frames_.lower_bound(first_block);
    while (it != frames_.end() && it->first < first_block + count) {
      EXPECT_EQ(it->second.pins, 0);
      free_.insert(free_.begin(), it->second.index);
      it = frames_.erase(it);
    }
  }
  void sync(uint64_t first_block, uint64_t count) {
    std::lock_guard lock(mutex_);
    for (auto it = frames_.lower_bound(first_block); it != frames_.end() && it->first < first_block + count;
         ++it) {
      if (!it->second.dirty) continue;
      BlockId block(it->first - (SPW_MANAGED_BASE >> 12));
      const cache::Backing place = source->locate_for_writeback(block);
      move(store::Op::kWrite, place, it->second.data);
      source->written_back(block, place.store);
      it->second.dirty = false;
    }
  }
  int pinned() const { return pinned_; }
  size_t resident() const { return frames_.size(); }

 private:
  struct Frame {
    std::byte* data = nullptr;
    uint32_t index = 0;
    int pins = 0;
    bool dirty = false;
  };
  static void move(store::Op op, const cache::Backing& backing, std::byte* data) {
    ASSERT_NE(backing.store, nullptr);
    store::Request request;
    request.op = op;
    request.offset_bytes = backing.offset_bytes;
    request.segment_count = 1;
    request.segments[0] = {data, kFakeBlock};
    Status moved = backing.store->transfer(request);
    EXPECT_TRUE(moved.is_ok()) << moved.message();
  }
  Frame& frame_of(uint64_t block) {
    auto it = frames_.find(block);
    if (it != frames_.end()) return it->second;
    Frame frame;
    EXPECT_FALSE(free_.empty());
    frame.index = static_cast<uint32_t>(free_.back());
    free_.pop_back();
    frame.data = memory_ + frame.index * 2 * kFakeBlock;
    memset(frame.data, 0, kFakeBlock);
    if (source != nullptr) {
      auto backing = source->locate_for_fill(BlockId(block - (SPW_MANAGED_BASE >> 12)));
      EXPECT_NE(backing.store, nullptr) << "block of no region";
      if (backing.has_contents) move(store::Op::kRead, backing, frame.data);
    }
    return frames_.emplace(block, frame).first->second;
  }
  static int& windows_here() {
    thread_local int windows = 0;
    return windows;
  }

  std::mutex mutex_;
  std::byte* memory_ = nullptr;
  std::vector<size_t> free_;
  std::map<uint64_t, Frame> frames_;
  std::map<uint32_t, uint64_t> blocks_;
  int pinned_ = 0;
};

// A heap and regions on fakes, with discards that reach the fake frames, as the context of the interposed functions.
class FakeManagedSpace : public region::CacheRanges {
 public:
  static constexpr uint64_t kSpace = 16 * kGiB;

  explicit FakeManagedSpace(uint64_t threshold_bytes = 64 * kKiB, uint64_t quota_bytes = UINT64_MAX) {
    auto made_map = region::RegionMap::create(12, kSpace, spill);
    EXPECT_TRUE(made_map.is_ok());
    map = std::move(*made_map);
    map->attach(this);
    access.source = map.get();
    auto made = heap::Heap::create(*map, kSpace);
    EXPECT_TRUE(made.is_ok());
    heap = std::move(*made);
    context.heap = heap.get();
    context.regions = map.get();
    context.access = &access;
    libc::set_allocation_rules({threshold_bytes, quota_bytes, false});
    access::set_context(&context);
  }
  ~FakeManagedSpace() override {
    EXPECT_EQ(access.pinned(), 0);
    access::set_context(nullptr);
    libc::set_allocation_rules({});
    heap->check_invariants();
    heap.reset();
    map.reset();
  }

  void grow(BlockId, uint64_t, uint64_t, bool) override {}
  void grown(BlockId, uint64_t) override {}
  void discard(BlockId first, uint64_t count) override {
    ++discards;
    access.discard((SPW_MANAGED_BASE >> 12) + first.value, count);
  }
  Status flush(BlockId first, uint64_t count) override { return sync(first, count); }
  Status sync(BlockId first, uint64_t count) override {
    access.sync((SPW_MANAGED_BASE >> 12) + first.value, count);
    ++syncs;
    return Status::ok();
  }
  void prefetch(BlockId, uint64_t) override { ++prefetches; }
  void forget(store::Store&) override { ++forgets; }

  FakeStore spill{kSpace};
  FakeAccess access;
  std::unique_ptr<region::RegionMap> map;
  std::unique_ptr<heap::Heap> heap;
  access::Context context;
  int discards = 0, syncs = 0, prefetches = 0, forgets = 0;
};

// A managed buffer and a plain one that ought to hold the same.
class Twin {
 public:
  Twin(FakeManagedSpace& space, size_t bytes)
      : space_(space), plain_(bytes), managed_(static_cast<char*>(space.heap->allocate(bytes).address)) {
    EXPECT_NE(managed_, nullptr);
  }
  ~Twin() { space_.heap->free(managed_); }
  Twin(const Twin&) = delete;

  char* plain() { return plain_.data(); }
  char* managed() { return managed_; }
  size_t bytes() const { return plain_.size(); }
  // Both get the same random bytes below `values`, above `least`.
  void randomise(Rng& rng, unsigned values = 256, unsigned least = 0) {
    for (char& c : plain_) c = static_cast<char>(least + rng.below(values));
    put();
  }
  void put() { move(true); }
  std::vector<char> contents() {
    std::vector<char> out(bytes());
    std::swap(out, plain_);
    move(false);
    std::swap(out, plain_);
    return out;
  }
  void expect_same() { EXPECT_TRUE(contents() == plain_); }

 private:
  void move(bool to_managed) {
    for (size_t done = 0; done < bytes();) {
      auto window = space_.access.pin(reinterpret_cast<uintptr_t>(managed_) + done, bytes() - done,
                                      to_managed ? cache::Access::kWrite : cache::Access::kRead);
      if (to_managed)
        memcpy(window.data, plain_.data() + done, window.bytes);
      else
        memcpy(plain_.data() + done, window.data, window.bytes);
      space_.access.unpin(window);
      done += window.bytes;
    }
  }
  FakeManagedSpace& space_;
  std::vector<char> plain_;
  char* managed_;
};

}  // namespace spw::testing
