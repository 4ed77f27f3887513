// A file in the mapped engine whose blocks can come loose, few frames, and threads that hold what they are told to.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "mapped_engine_fixture.h"

namespace spw::access {

inline constexpr uint32_t kFewFrames = 256;
inline constexpr uint64_t kFileBytes = 16 * kMiB;
inline constexpr uintptr_t kMemory = kFirst + 128 * kMiB;
inline constexpr uint64_t kMemoryBytes = 64 * kMiB;

inline uint64_t get(uintptr_t address) { return *reinterpret_cast<volatile uint64_t*>(address); }
inline void put(uintptr_t address, uint64_t value) { *reinterpret_cast<volatile uint64_t*>(address) = value; }
inline void add_one(uintptr_t address) {
  std::atomic_ref(*reinterpret_cast<uint64_t*>(address)).fetch_add(1, std::memory_order_relaxed);
}
inline uint64_t counter_at(uintptr_t address) {
  return std::atomic_ref(*reinterpret_cast<uint64_t*>(address)).load(std::memory_order_relaxed);
}

// Whether it comes to hold within a time that no machine needs.
template <class Condition>
bool comes(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// A thread that does what it is told, one thing after the other, and holds what it has reached meanwhile.
class Other {
 public:
  Other() : thread_([this] { work(); }) {}
  ~Other() { end(); }
  // Returns when it is done.
  void run(std::function<void()> task) {
    std::unique_lock lock(mutex_);
    task_ = std::move(task);
    changed_.notify_all();
    changed_.wait(lock, [this] { return !task_; });
  }
  void end() {
    if (!thread_.joinable()) return;
    run([this] { ends_ = true; });
    thread_.join();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (!ends_) {
      changed_.wait(lock, [this] { return task_ != nullptr; });
      task_();
      task_ = nullptr;
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;
  bool ends_ = false;
  std::thread thread_;
};

// A shared file, each of whose words says where it stands, and memory to push its blocks out with.
class LooseBlocks : public MappedEngineTest {
 protected:
  uint32_t frames() const override { return kFewFrames; }
  FaultChoice faults_by() const override { return FaultChoice::kSignals; }
  bool reads_ahead() const override { return false; }  // what it brings is placed
  virtual region::Kind file_kind() const { return region::Kind::kSharedFile; }
  virtual std::unique_ptr<store::Store> make_file() {
    return std::move(*store::MemoryStore::create(kFileBytes, &file_plan_));
  }

  void SetUp() override {
    MappedEngineTest::SetUp();
    if (IsSkipped()) return;
    auto file = make_file();
    file_ = file.get();
    for (uint64_t block = 0; block < blocks(); ++block) {
      for (uint64_t word = 0; word < words(); ++word) buffer_[word] = at_first(block, word);
      transfer(store::Op::kWrite, block);
    }
    ASSERT_TRUE(regions_->add_file(kFirst, kFileBytes, {regions_->adopt(std::move(file)), 0, file_kind()}));
    regions_->add_anonymous(kMemory, kMemoryBytes);
    engine_->watch();
    // The first block of an extent comes by a fault, which makes the extent's hints say that the others are not there.
    for (uint64_t offset = kHugePageBytes; offset <= kFileBytes; offset += kHugePageBytes)
      ASSERT_NE(get(kFirst + offset - 8), 0u);
    push_all_out();
  }
  void TearDown() override {
    if (engine_) let_go();
    MappedEngineTest::TearDown();
  }

  uint64_t block_bytes() const { return uint64_t{1} << block_shift(); }
  uint64_t words() const { return block_bytes() / 8; }
  uint64_t blocks() const { return kFileBytes >> block_shift(); }
  static uint64_t at_first(uint64_t block, uint64_t word) { return (block + 1) << 20 | word; }
  uintptr_t at(uint64_t block, uint64_t word = 0) const {
    return kFirst + (block << block_shift()) + word * 8;
  }
  BlockId id(uintptr_t address) const { return BlockId((address - SPW_MANAGED_BASE) >> block_shift()); }
  std::byte* pointer(uint64_t block) const { return reinterpret_cast<std::byte*>(at(block)); }

  // As recompiled code does, of a word; from which site of a segment.
  uintptr_t to_load(uintptr_t address, uint32_t site = 0) { return engine_->reach(address, 8, site, false); }
  uintptr_t to_store(uintptr_t address, uint32_t site = 0) { return engine_->reach(address, 8, site, true); }
  static bool is_raw(uintptr_t address) { return !is_managed(address); }
  // What this thread holds, as a call of another range does.
  void let_go() { EXPECT_TRUE(engine_->flush(id(kMemory + kMemoryBytes - block_bytes()), 1)); }
  void push_all_out() {
    for (int turn = 0; turn < 3; ++turn)
      for (uint64_t i = 0; i < 2 * frames(); ++i) put(kMemory + (i << block_shift()), i);
  }
  // By another thread, as this one may hold what stays.
  void push_all_out_elsewhere() {
    std::thread([this] { push_all_out(); }).join();
  }
  // As libc/signals does around a handler of the program's.
  template <class Handler>
  [[gnu::noinline]] void handle(Handler handler) {
    const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    const int level = engine_->handler_begins({here, 0, 0, here + 64});
    handler();
    engine_->handler_ends(level);
  }
  bool is_cached(uint64_t block) const { return cache_->is_resident(id(at(block))); }
  bool has_page(uint64_t block) const { return is_resident(pointer(block)); }
  bool loses_its_alias(uint64_t block) const {
    return comes([&] { return !has_page(block); });
  }

  uint64_t in_store(uint64_t block, uint64_t word) {
    transfer(store::Op::kRead, block);
    return buffer_[word];
  }
  void transfer(store::Op op, uint64_t block) {
    store::Request request;
    request.op = op;
    request.offset_bytes = block << block_shift();
    request.segment_count = 1;
    request.segments[0] = {buffer_.data(), block_bytes()};
    SPW_CHECK(file_->transfer(request).is_ok());
  }

  store::FaultPlan file_plan_;
  store::Store* file_ = nullptr;
  alignas(4096) std::array<uint64_t, 8192> buffer_{};
};

}  // namespace spw::access
