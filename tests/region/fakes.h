// A store in memory that counts what is asked of it, and cache ranges that record calls.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "region/cache_ranges.h"
#include "store/store.h"

namespace spw::testing {

class FakeStore : public store::Store {
 public:
  static constexpr uint64_t kPageBytes = 4096;

  explicit FakeStore(uint64_t size_bytes) : size_bytes_(size_bytes) {}
  std::string describe() const override { return "fake"; }
  uint64_t size_bytes() const override { return size_bytes_; }
  uint64_t alignment_bytes() const override { return 512; }
  Result<std::unique_ptr<store::IoQueue>> open_queue(size_t) override { return Status(ENOTSUP, "no queues"); }
  Status reserve(uint64_t, uint64_t) override { return Status::ok(); }

  Status transfer(store::Request& request) override {
    std::lock_guard lock(mutex_);
    uint64_t offset = request.offset_bytes;
    switch (request.op) {
      case store::Op::kDiscard:
        ++discards;
        discarded_bytes += request.discard_bytes;
        for (uint64_t at = 0; at < request.discard_bytes; at += kPageBytes)
          pages_.erase((offset + at) / kPageBytes);
        break;
      case store::Op::kSync:
        ++syncs;
        break;
      default:
        request.op == store::Op::kRead ? ++reads : ++writes;
        for (uint32_t i = 0; i < request.segment_count; ++i) {
          copy(request.op, offset, static_cast<std::byte*>(request.segments[i].iov_base),
               request.segments[i].iov_len);
          offset += request.segments[i].iov_len;
        }
    }
    return Status::ok();
  }
  size_t pages_held() const { return pages_.size(); }

  uint64_t reads = 0, writes = 0, discards = 0, syncs = 0, discarded_bytes = 0;

 private:
  void copy(store::Op op, uint64_t offset, std::byte* data, uint64_t bytes) {
    for (uint64_t done = 0; done < bytes;) {
      uint64_t in_page = (offset + done) % kPageBytes, step = std::min(bytes - done, kPageBytes - in_page);
      auto page = pages_.find((offset + done) / kPageBytes);
      if (op == store::Op::kWrite) {
        auto& contents = pages_[(offset + done) / kPageBytes];
        contents.resize(kPageBytes);
        std::memcpy(contents.data() + in_page, data + done, step);
      } else if (page == pages_.end()) {
        std::memset(data + done, 0, step);
      } else {
        std::memcpy(data + done, page->second.data() + in_page, step);
      }
      done += step;
    }
  }

  const uint64_t size_bytes_;
  std::mutex mutex_;
  std::map<uint64_t, std::vector<std::byte>> pages_;
};

class RecordedRanges : public region::CacheRanges {
 public:
  struct Call {
    uint64_t first;
    uint64_t count;
    bool operator==(const Call&) const = default;
  };
  void grow(BlockId first, uint64_t count, uint64_t live_bytes, bool has_contents) override {
    std::lock_guard lock(mutex_);
    grows.push_back({first.value, count});
    live = live_bytes;
    last_has_contents = has_contents;
  }
  void grown(BlockId, uint64_t) override {}
  void discard(BlockId first, uint64_t count) override {
    std::lock_guard lock(mutex_);
    discards.push_back({first.value, count});
  }
  Status flush(BlockId first, uint64_t count) override {
    std::lock_guard lock(mutex_);
    flushes.push_back({first.value, count});
    return Status::ok();
  }
  Status sync(BlockId first, uint64_t count) override {
    std::lock_guard lock(mutex_);
    syncs.push_back({first.value, count});
    return Status::ok();
  }
  void prefetch(BlockId first, uint64_t count) override {
    std::lock_guard lock(mutex_);
    prefetches.push_back({first.value, count});
  }
  void forget(store::Store& store) override {
    std::lock_guard lock(mutex_);
    forgotten.push_back(&store);
  }
  uint64_t live = 0;  // bytes, as the last grow() said
  bool last_has_contents = false;
  std::vector<Call> grows, discards, flushes, syncs, prefetches;
  std::vector<store::Store*> forgotten;

 private:
  std::mutex mutex_;
};

}  // namespace spw::testing
