#include "access/translate/translator.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "access/translate/engine.h"
#include "base/few_bytes.h"
#include "base/rng.h"

namespace spw::cache {
class Client {};
}  // namespace spw::cache

namespace spw::access {
namespace {

constexpr unsigned kShift = 12;
constexpr size_t kBlock = size_t{1} << kShift;

// A cache that evicts a block the moment its last pin goes, poisons the frame, and counts what it is asked.
class EvictAtOnce final : public cache::SharedCache {
 public:
  explicit EvictAtOnce(uint32_t partitions, uint32_t frames) : map_(partitions), frames_(frames) {
    for (uint32_t i = frames; i-- > 0;) free_.push_back(i);
  }
  Result<cache::Client*> open_client(cache::Uses) override { return &client_; }
  void close_client(cache::Client*) override {}
  Status pin(cache::Client&, BlockId block, cache::Access access, cache::Pin* out) override {
    auto [it, inserted] = where_.try_emplace(block.value, 0);
    if (inserted) {
      EXPECT_FALSE(free_.empty());
      it->second = free_.back();
      free_.pop_back();
      Frame& frame = frames_[it->second];
      frame.block = block.value;
      frame.dirty = false;
      auto& image = disk_[block.value];
      if (image.empty()) image.assign(kBlock, std::byte{0});
      frame.bytes = image;
      ++fills;
    }
    Frame& frame = frames_[it->second];
    if (frame.refs++ == 0) peak = std::max(peak, ++pinned);
    if (access != cache::Access::kRead) frame.dirty = true;
    out->data = frame.bytes.data();
    out->frame = FrameId(it->second);
    return {};
  }
  void mark_dirty(cache::Client&, FrameId frame) override { frames_[frame.value].dirty = true; }
  void unpin(cache::Client&, FrameId id) override {
    Frame& frame = frames_[id.value];
    ASSERT_GT(frame.refs, 0);
    if (--frame.refs > 0) return;
    --pinned;
    if (frame.dirty) disk_[frame.block] = frame.bytes;
    std::fill(frame.bytes.begin(), frame.bytes.end(), std::byte{0xDB});
    where_.erase(frame.block);
    free_.push_back(id.value);
  }
  void set_frame_limit(uint32_t) override {}
  void note_passed(uint64_t) override {}
  uint32_t frame_limit() const override { return frame_count(); }
  bool make_room(cache::Client&, unsigned, unsigned) override { return false; }
  Status evict_to_limit(cache::Client&) override { return {}; }
  void prefetch(cache::Client&, BlockId, uint64_t) override {}
  void adopt(cache::Client&, BlockId, uint64_t) override {}
  void discard(cache::Client&, BlockId, uint64_t) override {}
  Status flush(cache::Client&, BlockId, uint64_t) override { return {}; }
  void begin_flush(cache::Client&, const std::function<cache::BlockRun()>&, cache::Flushing*) override {}
  Status end_flush(cache::Client&, cache::Flushing*) override { return {}; }
  bool try_end_flush(cache::Client&, cache::Flushing*, Status*) override { return true; }
  bool is_dirty(BlockId block) const override { return frames_[where_.at(block.value)].dirty; }
  Status sync(cache::Client&, BlockId, uint64_t) override { return {}; }
  cache::PartitionMap partition_map() const override { return map_; }
  uint32_t frames_per_partition() const override {
    return static_cast<uint32_t>(frames_.size()) / map_.count();
  }
  uint32_t frame_count() const override { return static_cast<uint32_t>(frames_.size()); }
  uint32_t free_frames() const override { return static_cast<uint32_t>(free_.size()); }
  uint32_t occupied_frames() const override { return static_cast<uint32_t>(free_.size()); }
  bool has_free_frames(PartitionId) const override { return !pressed; }
  uint32_t peak_frames() const override { return peak; }
  uint64_t metadata_bytes() const override { return 0; }
  void check_invariants() override {}

  uint32_t pinned = 0, peak = 0, fills = 0;
  bool pressed = false;

 private:
  struct Frame {
    std::vector<std::byte> bytes;
    uint64_t block = 0;
    int refs = 0;
    bool dirty = false;
  };
  cache::PartitionMap map_;
  std::vector<Frame> frames_;
  std::vector<uint32_t> free_;
  std::map<uint64_t, uint32_t> where_;
  std::map<uint64_t, std::vector<std::byte>> disk_;
  cache::Client client_;
};

[[noreturn]] void die(const Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::abort();
}

class TranslatorTest : public testing::Test {
 protected:
  TranslatorTest() : cache_(2, 4096) {}
  void make(const SatcShape& shape, PinBudget* budget = nullptr) {
    shape_ = shape;
    TranslatorConfig config{&cache_, kShift, cache_.partition_map(), &die, budget, nullptr, levels_};
    client_ = *cache_.open_client(cache::Uses::kSeen);
    translator_ = std::make_unique<Translator>(config, *client_, shape, thread_);
  }
  void TearDown() override {
    if (translator_) translator_->flush();
    EXPECT_EQ(cache_.pinned, 0u);
  }
  // What inlined code does: the entry's tag, then the slow call.
  std::byte* access(uintptr_t p, size_t size, bool store) {
    uint64_t granule = p >> SPW_GRANULE_SHIFT;
    auto* entry = reinterpret_cast<__spw_satc_entry*>(reinterpret_cast<char*>(thread_.direct) +
                                                      (granule << 4 & thread_.direct_mask_bytes));
    uint32_t last = static_cast<uint32_t>((p + size - 1) >> SPW_GRANULE_SHIFT);
    if ((store ? entry->write_tag : entry->read_tag) == last)
      return reinterpret_cast<std::byte*>(p + entry->delta);
    return translator_->translate(p, store);
  }

  EvictAtOnce cache_;
  SatcLevels levels_ = SatcLevels::kAll;
  SatcShape shape_;
  cache::Client* client_ = nullptr;
  __spw_thread thread_{};
  std::unique_ptr<Translator> translator_;
};

// With every choice of levels.
class LevelsTest : public TranslatorTest, public testing::WithParamInterface<SatcLevels> {
 protected:
  LevelsTest() { levels_ = GetParam(); }
};
const char* name_of(const testing::TestParamInfo<SatcLevels>& info) {
  constexpr const char* kNames[] = {"all", "private_only", "direct_only", "none"};
  return kNames[static_cast<size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Levels, LevelsTest,
                         testing::Values(SatcLevels::kAll, SatcLevels::kPrivate, SatcLevels::kDirect,
                                         SatcLevels::kNone),
                         name_of);

constexpr uintptr_t address_of(uint64_t block, uint64_t offset = 0) {
  return SPW_MANAGED_BASE + block * kBlock + offset;
}

TEST_P(LevelsTest, random_accesses_agree_with_a_reference_model) {
  make({2, 3, 4});
  Rng rng(7);
  constexpr uint64_t kBlocks = 300;
  std::vector<uint8_t> model(kBlocks * kBlock);
  for (int i = 0; i < 300000 / SPW_SLOWED; ++i) {
    uint64_t at = rng.below(model.size() - SPW_ACCESS_BYTES_MAX);
    uintptr_t p = address_of(1) + at;
    size_t size = size_t{1} << rng.below(7);
    bool crosses = (at % kBlock) + size > kBlock;
    if (rng.below(2)) {
      uint8_t bytes[SPW_ACCESS_BYTES_MAX];
      for (auto& byte : bytes) byte = static_cast<uint8_t>(rng.next());
      if (crosses) {
        translator_->write_across(p, reinterpret_cast<std::byte*>(bytes), size);
      } else {
        std::memcpy(access(p, size, true), bytes, size);
      }
      std::memcpy(&model[at], bytes, size);
    } else {
      const std::byte* raw = crosses ? translator_->read_across(p, size) : access(p, size, false);
      ASSERT_EQ(std::memcmp(raw, &model[at], size), 0) << "at " << at << " size " << size;
    }
  }
  EXPECT_LE(cache_.peak, shape_.entries() + kRingPins);
}

TEST_P(LevelsTest, short_moves_across_blocks_agree_with_memmove) {
  make({2, 3, 4});
  Rng rng(11);
  std::vector<uint8_t> model(64 * kBlock);
  std::vector<uint8_t> plain(kFewBytesMax);
  const auto managed = [](uint64_t at) { return reinterpret_cast<void*>(address_of(1) + at); };
  // Places near the ends of blocks, and often near each other.
  const auto place = [&] {
    return (1 + rng.below(60)) * kBlock - kFewBytesMax + rng.below(2 * kFewBytesMax);
  };
  for (int i = 0; i < 100000; ++i) {
    const size_t size = rng.below(kFewBytesMax + 1);
    const uint64_t to = place();
    const uint64_t from = rng.below(2) ? place() : to + rng.below(64) - rng.below(64);
    switch (rng.below(3)) {
      case 0:
        for (auto& byte : plain) byte = static_cast<uint8_t>(rng.next());
        translator_->copy_few(managed(to), plain.data(), size);
        std::memcpy(&model[to], plain.data(), size);
        break;
      case 1:
        translator_->copy_few(managed(to), managed(from), size);
        std::memmove(&model[to], &model[from], size);
        break;
      default:
        translator_->copy_few(plain.data(), managed(from), size);
        ASSERT_EQ(std::memcmp(plain.data(), &model[from], size), 0) << "at " << from << " size " << size;
    }
  }
}

// Such as the end of an object, behind which there may be no block at all.
TEST_F(TranslatorTest, a_move_of_no_bytes_translates_neither_address) {
  make({2, 3, 4});
  char plain = 'x';
  translator_->copy_few(reinterpret_cast<void*>(address_of(1)), &plain, 0);
  translator_->copy_few(&plain, reinterpret_cast<void*>(address_of(2)), 0);
  EXPECT_EQ(cache_.fills, 0u);
  EXPECT_EQ(plain, 'x');
}

TEST_P(LevelsTest, a_raw_address_survives_the_promised_number_of_further_translations) {
  make({1, 1, 2});
  for (uint64_t round = 0; round < 1000; ++round) {
    auto* raw = reinterpret_cast<uint64_t*>(access(address_of(round + 1), 8, true));
    *raw = round;
    for (uint64_t k = 1; k <= SPW_STABLE_TRANSLATIONS; ++k)
      access(address_of(5000 + round * 16 + k), 8, false);
    ASSERT_EQ(*raw, round);
  }
}

TEST_P(LevelsTest, pins_in_one_partition_never_exceed_the_charge) {
  make({2, 2, 4});
  cache::PartitionMap map = cache_.partition_map();
  for (uint64_t block = 1; block < 20000; ++block)
    if (map.of(BlockId(block)) == PartitionId(0)) access(address_of(block), 8, false);
  EXPECT_LE(cache_.peak, shape_.charge());
}

TEST_F(TranslatorTest, pins_shrink_when_the_cache_must_evict_what_is_not_used_again) {
  make({1, 16, 8});
  for (uint64_t block = 1; block < 2000; ++block) access(address_of(block), 8, false);
  EXPECT_GT(cache_.pinned, 100u);
  cache_.pressed = true;
  for (uint64_t block = 2000; block < 40000; ++block) access(address_of(block), 8, false);
  EXPECT_LE(cache_.pinned, 16 * GhostList::kPressedWaysMin + kRingPins);
}

TEST_F(TranslatorTest, pins_grow_under_pressure_when_what_left_is_asked_for_again) {
  make({1, 16, 8});
  cache_.pressed = true;
  Rng rng(3);
  for (int i = 0; i < 100000; ++i) access(address_of(1 + rng.below(90)), 8, false);
  EXPECT_GT(cache_.pinned, 16u * 4);
  uint32_t fills = cache_.fills;
  for (int i = 0; i < 10000; ++i) access(address_of(1 + rng.below(90)), 8, false);
  EXPECT_LT(cache_.fills - fills, 2000u);
}

TEST_F(TranslatorTest, a_full_satc_takes_the_pins_nobody_claims_and_keeps_what_it_holds) {
  PinBudget budget(cache_.frames_per_partition(), 2, 1);
  make(*budget.acquire(), &budget);
  const uint32_t at_first = translator_->shape().entries();
  const uint64_t blocks = at_first + at_first / 2;
  for (uint64_t block = 1; block <= blocks; ++block)
    std::memcpy(access(address_of(block), 8, true), &block, 8);
  EXPECT_GT(translator_->shape().entries(), blocks);
  EXPECT_EQ(budget.charged(), translator_->shape().charge());
  EXPECT_GT(cache_.pinned, blocks - blocks / 8);
  const uint32_t fills = cache_.fills;
  for (uint64_t block = blocks; block > 0; --block) {
    uint64_t value;
    std::memcpy(&value, access(address_of(block), 8, false), 8);
    ASSERT_EQ(value, block);
  }
  EXPECT_LT(cache_.fills - fills, blocks / 8);
}

// Blocks that fill all sets and fall into one set of the larger SATC: nearly all of them leave at once.
TEST_F(TranslatorTest, what_was_translated_stays_valid_when_the_satc_grows) {
  PinBudget budget(cache_.frames_per_partition(), 2, 1), same(cache_.frames_per_partition(), 2, 1);
  make(*budget.acquire(), &budget);
  const SatcShape first = translator_->shape(), larger = same.grow(*same.acquire());
  const cache::PartitionMap partitions = cache_.partition_map();
  std::deque<std::pair<const std::byte*, uint64_t>> recent;
  uint32_t left = first.sets * first.ways + 2 * SPW_STABLE_TRANSLATIONS;
  for (uint64_t block = 1; left > 0; ++block) {
    if (partitions.of(BlockId(block)).value != 0 ||
        partitions.index_within(BlockId(block)) % larger.sets != 0)
      continue;
    --left;
    std::byte* raw = access(address_of(block), 8, true);
    std::memcpy(raw, &block, 8);
    recent.emplace_back(raw, block);
    if (recent.size() > SPW_STABLE_TRANSLATIONS) recent.pop_front();
    for (const auto& [bytes, value] : recent) ASSERT_EQ(std::memcmp(bytes, &value, 8), 0) << value;
  }
  EXPECT_GT(translator_->shape().entries(), first.entries());
}

TEST_F(TranslatorTest, a_contiguous_range_fills_the_sets_evenly) {
  make({2, 51, 8});
  constexpr uint64_t kBlocks = 12 * cache::kGroupBlocks;  // six groups of each partition, of 51 * 8 entries
  for (int round = 0; round < 3; ++round)
    for (uint64_t block = 128; block < 128 + kBlocks; ++block) access(address_of(block), 8, false);
  EXPECT_EQ(cache_.fills, kBlocks);
}

TEST_P(LevelsTest, a_store_after_a_load_marks_the_block_dirty) {
  make({1, 1, 4});
  uint64_t value = 42;
  access(address_of(3), 8, false);
  std::memcpy(access(address_of(3), 8, true), &value, 8);
  translator_->flush();
  EXPECT_EQ(std::memcmp(access(address_of(3), 8, false), &value, 8), 0);
}

TEST_P(LevelsTest, a_window_keeps_its_block_while_other_blocks_come_and_go) {
  make({1, 1, 2});
  access::Window window = translator_->pin_window(address_of(5, 100), 8192, cache::Access::kWrite);
  EXPECT_EQ(window.bytes, kBlock - 100);
  std::memset(window.data, 7, window.bytes);
  for (uint64_t block = 100; block < 200; ++block) access(address_of(block), 8, false);
  EXPECT_EQ(window.data[0], std::byte{7});
  access::Window again = translator_->pin_window(address_of(5), 1, cache::Access::kRead);
  EXPECT_EQ(again.data + 100, window.data);
  translator_->unpin_window(again);
  for (uint64_t block = 200; block < 300; ++block) access(address_of(block), 8, false);
  EXPECT_EQ(window.data[0], std::byte{7});
  translator_->unpin_window(window);
}

TEST_P(LevelsTest, open_windows_agree_with_what_was_stored) {
  make({1, 1, 2});
  for (uint64_t block = 10; block < 30; ++block) {
    access::Window whole = translator_->open_window(address_of(block), kBlock * 3, cache::Access::kOverwrite);
    ASSERT_EQ(whole.bytes, kBlock);
    std::memset(whole.data, static_cast<int>(block), kBlock);
  }
  for (uint64_t block = 10; block < 30; ++block) {
    access::Window part = translator_->open_window(address_of(block, 4000), 200, cache::Access::kRead);
    ASSERT_EQ(part.bytes, 96u);
    EXPECT_EQ(part.data[95], static_cast<std::byte>(block));
  }
}

TEST_F(TranslatorTest, dropping_a_range_gives_up_its_pins_only) {
  make({2, 8, 8});
  for (uint64_t block = 100; block < 140; ++block) access(address_of(block), 8, true);
  translator_->drop(BlockId(100), 20);
  uint32_t fills = cache_.fills;
  for (uint64_t block = 120; block < 140; ++block) access(address_of(block), 8, false);
  EXPECT_EQ(cache_.fills, fills);
  translator_->drop(BlockId(0), 100000);
  EXPECT_LE(cache_.pinned, kRingPins);
}

TEST_F(TranslatorTest, direct_entries_alone_keep_what_they_reach_and_give_a_dropped_range_up) {
  levels_ = SatcLevels::kDirect;
  make({1, 5, 8});
  for (uint64_t block = 64; block < 96; ++block)
    access(address_of(block), 8, true);  // 32 entries, one granule each
  const uint32_t fills = cache_.fills;
  for (uint64_t block = 64; block < 96; ++block) access(address_of(block), 8, false);
  EXPECT_EQ(cache_.fills, fills);
  EXPECT_EQ(cache_.pinned, 32u);
  translator_->drop(BlockId(64), 16);
  for (uint64_t block = 80; block < 96; ++block) access(address_of(block), 8, false);
  EXPECT_EQ(cache_.fills, fills);
  for (uint64_t block = 1000; block < 1000 + kRingPins; ++block) access(address_of(block), 8, false);
  EXPECT_EQ(cache_.pinned, 32u);  // the ring turned round: what was dropped is gone
}

TEST_F(TranslatorTest, a_hot_block_reached_only_through_the_direct_satc_outlives_a_scan) {
  make({1, 1, 8});
  access(address_of(1), 8, false);
  uint32_t fills_of_hot = 0;
  for (uint64_t block = 100; block < 400; ++block) {
    uint32_t before = cache_.fills;
    access(address_of(1), 8, false);
    fills_of_hot += cache_.fills - before;
    access(address_of(block), 8, false);
  }
  EXPECT_LT(fills_of_hot, 150u);
}

}  // namespace
}  // namespace spw::access
