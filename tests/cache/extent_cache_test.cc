// A block cache with extents, over memory of the test's own that moves by copying: what is stored is read back, however
// its blocks come and go meanwhile. That the kernel moves pages is tested in tests/access/mapped.
#include "cache/extents/extent_cache.h"

#include <gtest/gtest.h>

#include <thread>

#include "cache_fixture.h"
#include "store/store_around.h"

namespace spw::cache {
namespace {

using telemetry::Counter;

constexpr unsigned kShift = 12;
constexpr uint64_t kInExtent = kExtentBytes >> kShift;
constexpr uint64_t kUsed = 40 * kInExtent;  // blocks that the tests use
constexpr uint32_t kFrames = 10240;         // half as many: 5 slots

class AnonymousBlocks final : public BlockSource {
 public:
  explicit AnonymousBlocks(store::Store& store) : blocks_(store, kShift) {}
  Backing locate_for_fill(BlockId block) override { return blocks_.locate_for_fill(block); }
  Backing locate_for_writeback(BlockId block) override { return blocks_.locate_for_writeback(block); }
  void written_back(BlockId block, const store::Store* to) override { blocks_.written_back(block, to); }
  bool is_anonymous(BlockId) override { return true; }
  void forget(uint64_t first, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) blocks_.set_contents(BlockId(first + i), false);
  }

 private:
  IdentityBlocks blocks_;
};

// Knows how many queues are open on it.
class CountedStore final : public store::StoreAround {
 public:
  explicit CountedStore(std::unique_ptr<Store> device) : StoreAround(std::move(device)) {}
  Result<std::unique_ptr<store::IoQueue>> open_queue(size_t depth) override {
    auto opened = device().open_queue(depth);
    if (!opened) return opened;
    return std::unique_ptr<store::IoQueue>(new Queue(std::move(*opened), open_));
  }
  Status transfer(store::Request& request) override { return device().transfer(request); }
  int open_queues() const { return open_; }

 private:
  class Queue final : public store::QueueAround {
   public:
    Queue(std::unique_ptr<store::IoQueue> device, std::atomic<int>& open)
        : QueueAround(std::move(device)), open_(open) {
      ++open_;
    }
    ~Queue() override { --open_; }
    size_t enqueue(std::span<store::Request* const> requests) override { return device().enqueue(requests); }
    size_t reap(std::span<store::Completion> out) override { return device().reap(out); }

   private:
    std::atomic<int>& open_;
  };

  bool fits(const store::Request&) override { return true; }
  std::atomic<int> open_{0};
};

class CopiedExtents final : public ExtentMemory {
 public:
  CopiedExtents()
      : space_(std::move(*platform::map_anonymous(kBlocks << kShift))),
        slots_(std::move(*platform::map_anonymous(16 * kExtentBytes))) {}
  uint32_t slots() const override { return 16; }
  BlockId end() const override { return BlockId(kBlocks); }
  std::byte* slot(uint32_t slot) const override { return slots_.data() + slot * kExtentBytes; }
  std::byte* address_of(BlockId block) const override { return space_.data() + (block.value << kShift); }
  bool prepare(uint32_t) override {
    with_memory_.fetch_add_relaxed(1);
    return true;
  }
  void release(uint32_t slot) override {
    with_memory_.fetch_sub_relaxed(1);
    std::memset(this->slot(slot), 0xa5, kExtentBytes);
  }
  uint32_t slots_with_memory() const { return with_memory_.load_relaxed(); }
  bool place(uint32_t slot, BlockId first) override { return move(address_of(first), this->slot(slot)); }
  bool take_back(uint32_t slot, BlockId first) override {
    return !is_common_.load_relaxed() && move(this->slot(slot), address_of(first));
  }
  // Of so many moves one is refused, as the kernel does where somebody else has the pages, too.
  void refuse_every(uint32_t moves) { refused_.store_relaxed(moves); }
  void zero(std::byte* address, uint64_t bytes) override { std::memset(address, 0, bytes); }
  // What is at its address stays there: somebody else has the pages, too.
  void have_in_common(bool is_common) { is_common_.store_relaxed(is_common); }

 private:
  bool move(std::byte* to, std::byte* from) {
    const uint32_t every = refused_.load_relaxed();
    if (every != 0 && moves_.fetch_add_relaxed(1) % every == every - 1) return false;
    std::memcpy(to, from, kExtentBytes);
    std::memset(from, 0xa5, kExtentBytes);
    return true;
  }

  platform::Mapping space_, slots_;
  Atomic<uint32_t> moves_{0}, refused_{0}, with_memory_{0};
  Atomic<bool> is_common_{false};
};

class ExtentCacheTest : public ::testing::Test {
 protected:
  ExtentCacheTest() {
    store_ =
        std::make_unique<CountedStore>(std::move(*store::MemoryStore::create(kBlocks << kShift, &plan_)));
    source_ = std::make_unique<AnonymousBlocks>(*store_);
    Options options;
    options.frame_count = kFrames;
    options.block_shift = kShift;
    options.policy = "clock2q+";
    auto blocks = SharedCache::create(options, *source_, &ExtentCacheTest::note_error, this);
    auto memory = std::make_unique<CopiedExtents>();
    memory_ = memory.get();
    ExtentMover::Options for_extents;
    for_extents.write_wait_ns = 2'000'000'000;
    for_extents.on_error = &ExtentCacheTest::note_error;
    for_extents.error_context = this;
    auto around = ExtentCache::around(std::move(*blocks), *source_, std::move(memory), for_extents);
    SPW_CHECK(around.is_ok());
    cache_ = std::move(*around);
    client_ = *cache_->open_client();
  }
  ~ExtentCacheTest() override {
    cache_->close_client(client_);
    cache_.reset();
  }
  static void note_error(void* test, const Status& status) {
    ++static_cast<ExtentCacheTest*>(test)->errors_;
    std::fprintf(stderr, "%s\n", status.message().c_str());
  }

  // Atomic<uint64_t>: at the block's begin, and at its end.
  static Atomic<uint64_t>& word(const Pin& pin, size_t offset) {
    return *reinterpret_cast<Atomic<uint64_t>*>(pin.data + offset);
  }
  static constexpr size_t kLast = (size_t{1} << kShift) - sizeof(uint64_t);

  void write(uint64_t block, uint64_t value) {
    Pin pin;
    ASSERT_TRUE(cache_->pin(*client_, BlockId(block), Access::kWrite, &pin).is_ok());
    word(pin, 0).store_relaxed(value);
    word(pin, kLast).store_relaxed(value);
    cache_->unpin(*client_, pin.frame);
  }
  uint64_t read(uint64_t block) {
    Pin pin;
    EXPECT_TRUE(cache_->pin(*client_, BlockId(block), Access::kRead, &pin).is_ok());
    const uint64_t value = word(pin, 0).load_relaxed();
    EXPECT_EQ(word(pin, kLast).load_relaxed(), value) << "block " << block;
    cache_->unpin(*client_, pin.frame);
    return value;
  }
  // So slowly that extents come in time.
  static void pause(uint64_t block) {
    if (block % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  void write_all(uint64_t salt) {
    for (uint64_t block = 0; block < kUsed; ++block, pause(block)) write(block, block ^ salt);
  }
  void expect_all(uint64_t salt) {
    for (uint64_t block = 0; block < kUsed; ++block, pause(block))
      ASSERT_EQ(read(block), block ^ salt) << block;
  }
  // Once, and again until `is_enough`, for a while: the thread that moves extents may be without a processor for long.
  template <class IsEnough, class Once>
  static void repeat_until(IsEnough is_enough, Once once) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    do once();
    while (!HasFatalFailure() && !is_enough() && std::chrono::steady_clock::now() < until);
  }
  // A pin of a block in an extent, behind the stream's beginning.
  Pin pin_some_extent(Access access) {
    Pin pin;
    repeat_until([&] { return pin.is_extent; },
                 [&] {
                   for (uint64_t block = 0; block < kUsed; ++block, pause(block)) {
                     ASSERT_TRUE(cache_->pin(*client_, BlockId(block), access, &pin).is_ok());
                     if (pin.is_extent && block > 20 * kInExtent) return;
                     cache_->unpin(*client_, pin.frame);
                     pin = Pin();
                   }
                 });
    return pin;
  }
  uint64_t first_of_extent(const Pin& pin) const {
    return static_cast<uint64_t>(pin.data - memory_->address_of(BlockId(0))) / kExtentBytes * kInExtent;
  }
  uint64_t stored(uint64_t block) {
    alignas(4096) std::byte buffer[1 << kShift];
    store::Request request;
    request.offset_bytes = block << kShift;
    request.segment_count = 1;
    request.segments[0] = {buffer, sizeof buffer};
    SPW_CHECK(store_->transfer(request).is_ok());
    uint64_t value;
    std::memcpy(&value, buffer, sizeof value);
    return value;
  }

  store::FaultPlan plan_;
  std::unique_ptr<CountedStore> store_;
  std::unique_ptr<AnonymousBlocks> source_;
  CopiedExtents* memory_ = nullptr;
  std::unique_ptr<SharedCache> cache_;
  Client* client_ = nullptr;
  std::atomic<int> errors_{0};
};

TEST_F(ExtentCacheTest, a_stream_comes_in_extents_and_what_it_changes_is_written) {
  const CounterDelta delta;
  write_all(1);
  repeat_until([&] { return delta(Counter::extent_fills) > 8; }, [&] { expect_all(1); });
  EXPECT_GT(delta(Counter::extent_fills), 8u);
  write_all(2);
  expect_all(2);
  ASSERT_TRUE(cache_->flush(*client_, BlockId(0), kUsed).is_ok());
  EXPECT_GT(delta(Counter::extent_pages_written), 0u);
  for (uint64_t block = 0; block < kUsed; block += 17) EXPECT_EQ(stored(block), block ^ 2);
  EXPECT_EQ(errors_, 0);
}

// Who is faster than the mover waits for it, rather than bring in block by block what is about to come as one. Of much
// more than fits, so that little of it is in memory as blocks.
TEST_F(ExtentCacheTest, a_stream_waits_for_the_extents_it_has_asked_for) {
  constexpr uint64_t kLong = 3 * kUsed, kRounds = 2;
  static_assert(kLong <= kBlocks);
  for (uint64_t block = 0; block < kLong; ++block) write(block, block ^ 1);
  const CounterDelta delta;
  for (uint64_t i = 0; i < kRounds * kLong; ++i) ASSERT_EQ(read(i % kLong), i % kLong ^ 1);
  EXPECT_GT(delta(Counter::extent_fills), kRounds * kLong / kInExtent / 2);
}

TEST_F(ExtentCacheTest, what_is_only_read_is_not_written) {
  write_all(1);
  ASSERT_TRUE(cache_->flush(*client_, BlockId(0), kUsed).is_ok());
  expect_all(1);
  const CounterDelta delta;
  repeat_until([&] { return delta(Counter::extent_evictions) > 8; }, [&] { expect_all(1); });
  EXPECT_GT(delta(Counter::extent_evictions), 8u);
  EXPECT_EQ(delta(Counter::extent_pages_written), 0u);
}

// As memory that is used between the blocks of a stream: what it is in is taken from its address and had back again.
TEST_F(ExtentCacheTest, an_extent_in_use_stays) {
  write_all(1);
  const uint64_t used = 20 * kInExtent + 7;
  for (uint64_t block = 0; block < used; ++block, pause(block)) ASSERT_EQ(read(block), block ^ 1);
  int times = 0, times_missed = 0;
  const CounterDelta delta;
  const auto pass = [&] {
    for (uint64_t block = used; block < kUsed; ++block, pause(block)) {
      ASSERT_EQ(read(block), block ^ 1);
      if (block % 16 != 0) continue;
      Pin pin;
      ASSERT_TRUE(cache_->pin(*client_, BlockId(used), Access::kRead, &pin).is_ok());
      ++times;
      times_missed += pin.was_miss;
      cache_->unpin(*client_, pin.frame);
    }
  };
  repeat_until([&] { return delta(Counter::extent_evictions) > 8; }, pass);
  EXPECT_GT(delta(Counter::extent_evictions), 8u) << "a stream of extents has passed";
  EXPECT_LE(times_missed, 1) << "of " << times;
}

// Their memory is for blocks that are missed then. One that is in use stays.
TEST_F(ExtentCacheTest, without_streams_extents_leave_that_nobody_uses) {
  write_all(1);
  std::optional<uint64_t> used;
  const auto stream = [&] {
    used.reset();
    for (uint64_t block = 0; block < 20 * kInExtent; ++block, pause(block)) {
      Pin pin;
      ASSERT_TRUE(cache_->pin(*client_, BlockId(block), Access::kRead, &pin).is_ok());
      if (pin.is_extent) used = block;
      cache_->unpin(*client_, pin.frame);
    }
  };
  repeat_until([&] { return used && memory_->slots_with_memory() >= SlotDemand::kLeast; }, stream);
  ASSERT_TRUE(used);
  ASSERT_GE(memory_->slots_with_memory(), SlotDemand::kLeast);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (uint64_t i = 0; memory_->slots_with_memory() > 1 && std::chrono::steady_clock::now() < until; ++i) {
    ASSERT_EQ(read(*used), *used ^ 1);
    // No two neighbours, so that there is no stream, and none of an extent that may be in a slot.
    const uint64_t random = (26 * kInExtent + i * 3277 % (24 * kInExtent)) % kUsed;
    ASSERT_EQ(read(random), random ^ 1);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  EXPECT_EQ(memory_->slots_with_memory(), 1u);
  expect_all(1);
}

TEST_F(ExtentCacheTest, frames_and_extents_together_are_within_the_limit) {
  write_all(1);
  for (uint64_t block = 0; block < kUsed; ++block, pause(block)) {
    ASSERT_EQ(read(block), block ^ 1);
    if (block % 64 == 0) ASSERT_LE(cache_->occupied_frames(), kFrames);
  }
  // A lower limit holds as soon as evict_to_limit() is back.
  cache_->set_frame_limit(kFrames / 4);
  ASSERT_TRUE(cache_->evict_to_limit(*client_).is_ok());
  EXPECT_LE(cache_->occupied_frames(), kFrames / 4);
  expect_all(1);
  EXPECT_LE(cache_->occupied_frames(), kFrames / 4);
}

TEST_F(ExtentCacheTest, a_lower_limit_takes_what_is_in_use) {
  write_all(1);
  expect_all(1);
  std::atomic<bool> stops{false};
  std::thread user([&] {
    Client* client = *cache_->open_client();
    for (uint64_t extent = 0; !stops; extent = (extent + 1) % (kUsed / kInExtent)) {
      Pin pin;
      if (!cache_->is_resident(BlockId(extent * kInExtent))) continue;
      ASSERT_TRUE(cache_->pin(*client, BlockId(extent * kInExtent), Access::kRead, &pin).is_ok());
      cache_->unpin(*client, pin.frame);
    }
    cache_->close_client(client);
  });
  cache_->set_frame_limit(kFrames / 8);
  const Status status = cache_->evict_to_limit(*client_);
  stops = true;
  user.join();
  EXPECT_TRUE(status.is_ok()) << status.message();
  EXPECT_LE(cache_->occupied_frames(), kFrames / 8);
  expect_all(1);
}

TEST_F(ExtentCacheTest, a_discarded_range_reads_as_zeros) {
  write_all(1);
  for (uint64_t block = 0; block < kUsed / 2; ++block, pause(block)) ASSERT_EQ(read(block), block ^ 1);
  // Some of it are extents, as a whole and in part.
  const uint64_t first = kUsed / 2 - 3 * kInExtent - 100, count = 2 * kInExtent;
  source_->forget(first, count);
  cache_->discard(*client_, BlockId(first), count);
  for (uint64_t block = first - 100; block < first; ++block) EXPECT_EQ(read(block), block ^ 1);
  for (uint64_t block = first; block < first + count; ++block) ASSERT_EQ(read(block), 0u) << block;
  for (uint64_t block = first + count; block < first + count + 500; ++block)
    EXPECT_EQ(read(block), block ^ 1);
}

TEST_F(ExtentCacheTest, what_is_kept_small_is_no_extent) {
  write_all(1);
  expect_all(1);
  cache_->keep_small(*client_, BlockId(0), kUsed);
  const CounterDelta delta;
  expect_all(1);
  EXPECT_EQ(delta(Counter::extent_fills), 0u);
  write_all(2);
  expect_all(2);
}

TEST_F(ExtentCacheTest, during_a_fork_there_are_none_and_later_they_come_again) {
  write_all(1);
  expect_all(1);
  write_all(2);
  cache_->begin_fork(*client_);
  // A child reads from the store what the parent has not got in its pages.
  for (uint64_t block = 0; block < kUsed; ++block)
    if (!cache_->is_resident(BlockId(block))) ASSERT_EQ(stored(block), block ^ 2) << block;
  const CounterDelta delta;
  expect_all(2);
  EXPECT_EQ(delta(Counter::extent_fills), 0u);
  cache_->end_fork();
  repeat_until([&] { return delta(Counter::extent_fills) > 0; }, [&] { expect_all(2); });
  EXPECT_GT(delta(Counter::extent_fills), 0u);
}

// As of a layer of a fork that is no longer used; its address may be another store's later.
TEST_F(ExtentCacheTest, a_store_that_goes_is_let_go_of_and_may_come_back) {
  write_all(1);
  expect_all(1);
  for (uint64_t salt = 2; salt < 5; ++salt) {
    cache_->begin_fork(*client_);
    ASSERT_TRUE(cache_->flush(*client_, BlockId(0), kUsed).is_ok());
    EXPECT_GT(store_->open_queues(), 0);
    cache_->close_store(*client_, *store_);
    EXPECT_EQ(store_->open_queues(), 0);
    cache_->end_fork();
    write_all(salt);
    expect_all(salt);
  }
}

// What was written before a discard is no measure of what is stored after it: the store has nothing of that any more.
TEST_F(ExtentCacheTest, what_is_stored_again_after_a_discard_is_kept) {
  write_all(1);
  const Pin pin = pin_some_extent(Access::kRead);
  ASSERT_TRUE(pin.is_extent);
  const uint64_t first = first_of_extent(pin);
  source_->forget(first, kInExtent);
  cache_->discard(*client_, BlockId(first), kInExtent);  // pinned, so that it is zeroed where it is
  EXPECT_EQ(word(pin, 0).load_relaxed(), 0u);
  cache_->unpin(*client_, pin.frame);
  for (uint64_t block = first; block < first + kInExtent; block += 3) write(block, block ^ 1);
  cache_->set_frame_limit(kFrames / 8);
  ASSERT_TRUE(cache_->evict_to_limit(*client_).is_ok());
  for (uint64_t block = first; block < first + kInExtent; ++block)
    ASSERT_EQ(read(block), (block - first) % 3 == 0 ? block ^ 1 : 0) << block;
}

// Were it to leave, the child would find neither its pages nor, on the store, its contents.
TEST_F(ExtentCacheTest, an_extent_that_is_pinned_for_long_stays_where_it_is_during_a_fork) {
  write_all(1);
  const Pin pin = pin_some_extent(Access::kWrite);
  ASSERT_TRUE(pin.is_extent);
  word(pin, 0).store_relaxed(77);
  cache_->begin_fork(*client_);
  cache_->unpin(*client_, pin.frame);
  cache_->set_frame_limit(kFrames / 8);  // somebody has to leave
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(word(pin, 0).load_relaxed(), 77u) << "it is not at its address";
  // Who frees what is in it does not wait for the fork, which may wait for him.
  cache_->discard(*client_, BlockId(first_of_extent(pin)), kInExtent);
  EXPECT_EQ(word(pin, 0).load_relaxed(), 0u);
  cache_->end_fork();
  ASSERT_TRUE(cache_->evict_to_limit(*client_).is_ok());
  EXPECT_LE(cache_->occupied_frames(), kFrames / 8);
}

TEST_F(ExtentCacheTest, a_write_that_fails_is_made_again) {
  write_all(1);
  expect_all(1);
  ASSERT_TRUE(
      plan_.add("write:2:EIO,write:5:EIO,write:9:EIO,write:14:EIO,write:20:EIO,write:40:EIO").is_ok());
  for (uint64_t block = 0; block < kInExtent * 8; ++block, pause(block)) write(block, block ^ 3);
  plan_.clear();
  for (uint64_t block = 0; block < kInExtent * 8; ++block, pause(block)) ASSERT_EQ(read(block), block ^ 3);
  for (uint64_t block = kInExtent * 8; block < kUsed; ++block, pause(block))
    ASSERT_EQ(read(block), block ^ 1);
}

TEST_F(ExtentCacheTest, a_read_that_fails_is_the_block_caches_to_tell) {
  write_all(1);
  ASSERT_TRUE(plan_.add("read:200:EIO,read:300:EIO,read:500:EIO").is_ok());
  expect_all(1);
  EXPECT_EQ(errors_, 0);
}

TEST_F(ExtentCacheTest, moves_that_are_refused_lose_nothing) {
  memory_->refuse_every(3);
  write_all(1);
  expect_all(1);
  write_all(2);
  expect_all(2);
}

// Nobody waits for ever for an extent that has to stay where it is.
TEST_F(ExtentCacheTest, a_range_is_given_up_and_a_fork_begins_where_no_move_succeeds) {
  write_all(1);
  const CounterDelta delta;
  repeat_until([&] { return delta(Counter::extent_fills) > 0; }, [&] { expect_all(1); });
  memory_->have_in_common(true);
  const uint64_t first = kUsed / 2 - 3 * kInExtent - 100, count = 2 * kInExtent;
  source_->forget(first, count);
  cache_->discard(*client_, BlockId(first), count);
  for (uint64_t block = first; block < first + count; ++block) ASSERT_EQ(read(block), 0u) << block;
  cache_->begin_fork(*client_);
  cache_->end_fork();
  memory_->have_in_common(false);
  for (uint64_t block = 0; block < kUsed; ++block, pause(block))
    ASSERT_EQ(read(block), block >= first && block < first + count ? 0 : block ^ 1) << block;
}

// Streams, random stores, ranges that are flushed, discarded and kept small, and a limit that changes: each block's
// count is of the stores to it, whichever memory they went to.
TEST_F(ExtentCacheTest, stores_of_many_threads_are_all_there) {
  constexpr int kThreads = 4;
  constexpr uint64_t kStepsEach = 60'000 / SPW_SLOWED;
  memory_->refuse_every(50);
  write_all(0);
  const CounterDelta delta;
  std::vector<std::atomic<uint32_t>> stores(kUsed);
  std::atomic<bool> stops{false};
  const auto work = [&](int index) {
    Client* client = *cache_->open_client();
    Rng rng(static_cast<uint64_t>(index) + 1);
    uint64_t at = kUsed / kThreads * static_cast<uint64_t>(index);
    for (uint64_t step = 0; step < kStepsEach; ++step) {
      at = index % 2 == 0 || step % 4 != 0 ? (at + 1) % kUsed : rng.next() % kUsed;
      Pin pin;
      const bool stores_there = rng.next() % 2 == 0;
      const Access access = stores_there ? Access::kWrite : Access::kRead;
      ASSERT_TRUE(cache_->pin(*client, BlockId(at), access, &pin).is_ok());
      if (stores_there) {
        word(pin, 512).fetch_add_relaxed(1);
        stores[at].fetch_add(1);
      }
      ASSERT_LE(word(pin, 512).load_relaxed(), stores[at].load() + kThreads);
      cache_->unpin(*client, pin.frame);
      if (step % 512 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    cache_->close_client(client);
  };
  std::thread ranges([&] {
    Client* client = *cache_->open_client();
    Rng rng(99);
    while (!stops) {
      const uint64_t first = rng.next() % kUsed,
                     count = 1 + rng.next() % std::min(kUsed - first, 3 * kInExtent);
      switch (rng.next() % 4) {
        case 0:
          ASSERT_TRUE(cache_->flush(*client, BlockId(first), count).is_ok());
          break;
        case 1:
          cache_->prefetch(*client, BlockId(first), count);
          break;
        case 2:
          cache_->set_frame_limit(kFrames / 2 + static_cast<uint32_t>(rng.next() % (kFrames / 2)));
          break;
        default:
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    }
    cache_->close_client(client);
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  stops = true;
  ranges.join();
  for (uint64_t block = 0; block < kUsed; ++block) {
    Pin pin;
    ASSERT_TRUE(cache_->pin(*client_, BlockId(block), Access::kRead, &pin).is_ok());
    ASSERT_EQ(word(pin, 512).load_relaxed(), stores[block]) << block;
    ASSERT_EQ(word(pin, 0).load_relaxed(), block) << block;
    cache_->unpin(*client_, pin.frame);
  }
  EXPECT_GT(delta(Counter::extent_placements), 0u) << "there was hardly a race";
  EXPECT_GT(delta(Counter::extent_evictions), 0u) << "there was hardly a race";
  EXPECT_EQ(errors_, 0);
}

}  // namespace
}  // namespace spw::cache
