// Loose blocks under load: many threads, all ways in at once, and no update lost.

#include "base/rng.h"
#include "loose_blocks_fixture.h"
#include "store/file_store.h"

namespace spw::access {
namespace {

// ---- All at once ----

// Of each kind of access and call, in threads that get in each other's way as much as they can.
struct Load {
  const char* name;
  unsigned block_shift;
  const char* policy;
  bool tunes_fills;
  bool is_on_disk;  // so that a writeback takes a while
};

class LooseBlocksUnderLoad : public LooseBlocks, public testing::WithParamInterface<Load> {
 protected:
  static constexpr uint64_t kThreads = 4;
  static constexpr uint64_t kOperations = 300'000 / SPW_SLOWED;  // of all threads
  static constexpr uint64_t kCounters = 4;                       // of a block
  static constexpr uint64_t kScratchBlocks = 32;                 // of a thread

  unsigned block_shift() const override { return GetParam().block_shift; }
  std::string policy() const override { return GetParam().policy; }
  bool tunes_fills() const override { return GetParam().tunes_fills; }
  bool reads_ahead() const override { return true; }
  uint32_t frames() const override { return block_shift() == kShift ? kFewFrames : kFewFrames / 4; }
  std::unique_ptr<store::Store> make_file() override {
    if (!GetParam().is_on_disk) return LooseBlocks::make_file();
    return std::move(*store::FileStore::open_spill(testing::TempDir(), {}, kFileBytes));
  }

  // SPW_TEST_OPERATIONS: more, for a long run; SPW_TEST_SEED: others.
  static uint64_t number(const char* name, uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
  }

  uint64_t counted_blocks() const { return std::min<uint64_t>(blocks(), 4 * frames()); }
  uintptr_t counter(uint64_t which) const {
    return at(which / kCounters, which % kCounters * (words() / kCounters) + 1);
  }

  // What one thread does.
  class Worker {
   public:
    Worker(LooseBlocksUnderLoad& test, uint64_t number, uint64_t seed)
        : test_(test),
          number_(number),
          rng_(seed),
          added_(test.counted_blocks() * kCounters),
          seen_(added_.size()),
          scratch_(kScratchBlocks) {}
    void work(uint64_t operations) {
      for (uint64_t i = 0; i < operations && !testing::Test::HasFailure(); ++i) operate(rng_.below(1000));
      test_.let_go();
    }
    uint64_t added(uint64_t which) const { return added_[which]; }

   private:
    uint64_t some_counter() {
      // Some blocks are everybody's favourites.
      const uint64_t block = rng_.below(2) == 0 ? rng_.below(8) : rng_.below(test_.counted_blocks());
      return block * kCounters + rng_.below(kCounters);
    }
    void operate(uint64_t what) {
      if (what < 670) return segment();
      if (what < 770) return add_plainly();
      if (what < 870) return check(some_counter(), 0, false);
      if (what < 880) return hint();
      if (what < 890) return add_in_a_window();
      if (what < 900) return sleep_at();
      if (what < 901) return change_limit();
      if (what < 985) return use_scratch();
      if (what < 990) return look_at_others_scratch();
      if (what < 992) return drop_scratch();
      if (what < 997) return flush();
      walk();
    }
    // A few sites, whose raw addresses are used after all have been asked for.
    void segment() {
      const auto sites = static_cast<uint32_t>(1 + rng_.below(SPW_REACHES_MAX));
      std::array<uint64_t, SPW_REACHES_MAX> which;
      std::array<uintptr_t, SPW_REACHES_MAX> address;
      std::array<bool, SPW_REACHES_MAX> is_store;
      for (uint32_t site = 0; site < sites; ++site) {
        which[site] = some_counter();
        is_store[site] = rng_.below(2) == 0;
        address[site] = test_.engine_->reach(test_.counter(which[site]), 8, site, is_store[site]);
        if (rng_.below(50) == 0) add_plainly();
      }
      if (rng_.below(20) == 0) test_.handle([this] { interrupt(); });
      for (uint32_t site = 0; site < sites; ++site)
        is_store[site] ? add(which[site], address[site]) : check(which[site], address[site], true);
    }
    // What a handler of the program's may do.
    void interrupt() {
      const uint64_t which = some_counter();
      ASSERT_EQ(test_.to_store(test_.counter(which)), test_.counter(which));
      add(which, test_.counter(which));
      if (rng_.below(10) == 0) flush();
    }
    void add_in_a_window() {
      const uint64_t which = some_counter();
      const Window window = test_.engine_->pin(test_.counter(which), 8, cache::Access::kWrite);
      add(which, reinterpret_cast<uintptr_t>(window.data));
      test_.engine_->unpin(window);
    }
    void sleep_at() {
      const uint64_t which = some_counter();
      Window window;
      const bool is_kept = test_.engine_->keep(test_.counter(which), &window, cache::Access::kWrite);
      add(which, test_.counter(which));
      if (is_kept) test_.engine_->let_go(window);
    }
    void change_limit() {
      const uint32_t half = test_.frames() / 2;
      test_.cache_->set_frame_limit(half + static_cast<uint32_t>(rng_.below(half + 1)));
    }
    void add(uint64_t which, uintptr_t address) {
      add_one(address);
      ++added_[which];
    }
    void add_plainly() {
      const uint64_t which = some_counter();
      add(which, test_.counter(which));
    }
    // It never falls behind what this thread has seen of it, or added.
    void check(uint64_t which, uintptr_t address, bool is_reached) {
      const uint64_t value = counter_at(is_reached ? address : test_.counter(which));
      ASSERT_GE(value, std::max(seen_[which], added_[which])) << "counter " << which;
      seen_[which] = value;
    }
    void hint() {
      const uint64_t which = some_counter();
      test_.engine_->hint(test_.counter(which), true);
      add(which, test_.counter(which));
    }
    uintptr_t scratch(uint64_t thread, uint64_t block) const {
      return kMemory + 32 * kMiB + ((thread * kScratchBlocks + block) << test_.block_shift()) + 8;
    }
    void use_scratch() {
      const uint64_t block = rng_.below(kScratchBlocks);
      const uintptr_t address = scratch(number_, block);
      const bool is_reached = rng_.below(4) != 0;
      ASSERT_EQ(get(is_reached ? test_.to_load(address) : address), scratch_[block]);
      put(is_reached ? test_.to_store(address) : address, ++scratch_[block]);
    }
    // Holds it while its owner may drop it.
    void look_at_others_scratch() {
      const uintptr_t address = scratch((number_ + 1) % kThreads, rng_.below(kScratchBlocks));
      (void)counter_at(rng_.below(2) == 0 ? test_.to_load(address, SPW_REACHES_MAX - 1) : address);
    }
    void drop_scratch() {
      test_.regions_->discard(scratch(number_, 0) - 8, kScratchBlocks << test_.block_shift());
      std::fill(scratch_.begin(), scratch_.end(), 0);
    }
    void flush() {
      const uint64_t block = rng_.below(test_.counted_blocks() - 8);
      EXPECT_TRUE(test_.regions_->flush(test_.at(block), (1 + rng_.below(8)) << test_.block_shift()));
    }
    void walk() {
      const uint64_t block = rng_.below(test_.counted_blocks() - 24);
      for (uint64_t i = 0; i < 24; ++i) check((block + i) * kCounters, 0, false);
    }

    LooseBlocksUnderLoad& test_;
    const uint64_t number_;
    Rng rng_;
    std::vector<uint64_t> added_, seen_, scratch_;
  };
};

TEST_P(LooseBlocksUnderLoad, lose_no_update) {
  for (uint64_t which = 0; which < counted_blocks() * kCounters; ++which) put(counter(which), 0);
  // A block that is larger, or has to be fetched from a disk, takes so much longer.
  const unsigned slower_shift = block_shift() - kShift + (GetParam().is_on_disk ? 3 : 0);
  const uint64_t operations = number("SPW_TEST_OPERATIONS", kOperations) >> slower_shift;
  const uint64_t seed = number("SPW_TEST_SEED", 1);
  SCOPED_TRACE("SPW_TEST_SEED=" + std::to_string(seed));
  std::vector<std::unique_ptr<Worker>> workers;
  for (uint64_t i = 0; i < kThreads; ++i)
    workers.push_back(std::make_unique<Worker>(*this, i, seed * kThreads + i));
  std::vector<std::thread> threads;
  for (auto& worker : workers) threads.emplace_back([&] { worker->work(operations / kThreads); });
  for (auto& thread : threads) thread.join();
  RecordProperty("loose_fills", std::to_string(counted(Counter::loose_fills)));
  RecordProperty("placed_blocks", std::to_string(counted(Counter::placed_blocks)));
  RecordProperty("loose_aliases", std::to_string(counted(Counter::loose_aliases)));
  const auto expected = [&](uint64_t which) {
    uint64_t sum = 0;
    for (const auto& worker : workers) sum += worker->added(which);
    return sum;
  };
  for (uint64_t which = 0; which < counted_blocks() * kCounters; ++which) {
    ASSERT_EQ(get(to_load(counter(which))), expected(which)) << "counter " << which;
    ASSERT_EQ(get(counter(which)), expected(which)) << "counter " << which;
  }
  let_go();
  ASSERT_TRUE(regions_->sync(kFirst, kFileBytes));
  for (uint64_t which = 0; which < counted_blocks() * kCounters; ++which)
    ASSERT_EQ(in_store(which / kCounters, (counter(which) - at(which / kCounters)) / 8), expected(which));
}

INSTANTIATE_TEST_SUITE_P(of_four_threads, LooseBlocksUnderLoad,
                         testing::Values(Load{"small_blocks", 12, "clock", false, false},
                                         Load{"large_blocks", 16, "clock", false, false},
                                         Load{"tuned_fills", 12, "clock2q+", true, true},
                                         Load{"page_sets", 12, "sa-lfu", true, false},
                                         Load{"a_disk", 12, "clock", false, true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace spw::access
