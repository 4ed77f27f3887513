// Damage, want of room and failed writes: what a region says, and that nothing committed is lost.
#include "durable/persistent_region.h"

#include <gtest/gtest.h>

#include <set>

#include "durable/check.h"
#include "durable/regions.h"
#include "simulated_memory.h"

namespace spw::durable {
namespace {

class RegionTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    open();
    words_ = *regions_->allocate(thread_, 0, kWords * sizeof(uint64_t));
    ASSERT_TRUE(regions_->set_root(thread_, 0, "words", words_));
    fill(1);
  }
  Status try_open() {
    regions_.reset();
    thread_ = {};
    auto region = PersistentRegion::attach(memory_.view(), memory_, memory_, {});
    if (!region) return region.status();
    regions_ = std::make_unique<Regions>();
    return regions_->add(std::move(*region)).status();
  }
  void open() {
    const Status status = try_open();
    ASSERT_TRUE(status) << status.message();
  }
  uint64_t& word(uint64_t i) { return reinterpret_cast<uint64_t*>(words_)[i]; }
  Status put(uint64_t i, uint64_t value) {
    Status status = regions_->before_store(thread_, words_ + i * sizeof(uint64_t), sizeof(uint64_t));
    if (status) word(i) = value;
    return status;
  }
  void fill(uint64_t value) {
    regions_->begin(thread_);
    for (uint64_t i = 0; i < kWords; ++i) ASSERT_TRUE(put(i, value));
    ASSERT_TRUE(regions_->end(thread_));
  }
  void expect_all(uint64_t value) {
    for (uint64_t i = 0; i < kWords; ++i) ASSERT_EQ(word(i), value) << i;
  }
  // In the middle of a section that has changed everything; its log is durable.
  void leave_in_a_section() {
    regions_->begin(thread_);
    for (uint64_t i = 0; i < kWords; ++i) ASSERT_TRUE(put(i, 9));
    ASSERT_TRUE(regions_->region(0)->sections().persist());
    memory_.lose_power();
  }
  // `other`'s section is complete, and has stored over what thread_'s
  // has stored, which is in a section until it releases `outer`.
  void see_what_is_unfinished(Thread& other, const int* outer) {
    const int inner = 0;
    ASSERT_TRUE(regions_->acquired(thread_, outer));
    ASSERT_TRUE(regions_->acquired(thread_, &inner));
    ASSERT_TRUE(put(0, 10));
    ASSERT_TRUE(regions_->releasing(thread_, &inner));
    ASSERT_TRUE(regions_->acquired(other, &inner));
    ASSERT_TRUE(regions_->before_store(other, words_, 8));
    word(0) = 11;
    ASSERT_TRUE(regions_->releasing(other, &inner));
  }
  std::byte* first_record() { return memory_.view().mapped + memory_.view().header().logs_offset; }

  static constexpr uint64_t kWords = 32;
  SimulatedMemory memory_{GetParam(), 1, small_layout(2), 4 * kChunkBytes};
  std::unique_ptr<Regions> regions_;
  Thread thread_;
  uint64_t words_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Domains, RegionTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "memory" : "blocks"; });

TEST_P(RegionTest, an_unfinished_section_is_undone_and_counted) {
  leave_in_a_section();
  EXPECT_EQ(check_region(memory_.view(), GetParam()).sections_to_undo, 1u);
  open();
  EXPECT_EQ(regions_->region(0)->recovery().sections_undone, 1u);
  EXPECT_EQ(regions_->region(0)->recovery().records_undone, kWords);
  expect_all(1);
  fill(2);
  open();
  EXPECT_EQ(regions_->region(0)->recovery().sections_undone, 0u);
  expect_all(2);
}

TEST_P(RegionTest, a_record_that_is_torn_at_the_end_of_a_log_is_none) {
  leave_in_a_section();
  // The last record: as if it had not become durable, and neither the store it was made for.
  std::byte* last = first_record() + (kWords - 1) * record_bytes(8);
  last[20] ^= std::byte{1};
  word(kWords - 1) = 1;
  open();
  expect_all(1);
}

TEST_P(RegionTest, a_damaged_record_within_a_log_changes_nothing) {
  leave_in_a_section();
  std::vector<uint64_t> before;
  for (uint64_t i = 0; i < kWords; ++i) before.push_back(word(i));
  first_record()[5 * record_bytes(8) + 20] ^= std::byte{1};
  if (!GetParam()) GTEST_SKIP() << "in blocks it cannot be told from a write that a crash tore";
  const Status status = try_open();
  ASSERT_EQ(status.error(), EILSEQ);
  EXPECT_NE(status.message().find("slot 0"), std::string::npos) << status.message();
  EXPECT_FALSE(check_region(memory_.view(), GetParam()).problems.empty());
  for (uint64_t i = 0; i < kWords; ++i) ASSERT_EQ(word(i), before[i]);
  first_record()[5 * record_bytes(8) + 20] ^= std::byte{1};
  open();
  expect_all(1);
}

TEST_P(RegionTest, a_damaged_slot_word_changes_nothing) {
  const uint64_t before = memory_.view().slot(0).word;
  memory_.view().slot(0).word ^= 4;
  EXPECT_EQ(try_open().error(), EILSEQ);
  EXPECT_EQ(check_region(memory_.view(), GetParam()).problems.size(), 1u);
  memory_.view().slot(0).word = before;
  open();
  expect_all(1);
}

// Each bit of each word of chunks and slots, and of each byte of roots: refused, unchanged, and listed by check.
TEST_P(RegionTest, no_flipped_bit_of_what_describes_a_region_is_silent) {
  (void)*regions_->allocate(thread_, 0, 100'000);
  (void)*regions_->allocate(thread_, 0, 700);
  regions_.reset();
  const RegionView& view = memory_.view();
  const auto expect_found = [&](std::byte* at, size_t bytes, const char* what) {
    for (size_t bit = 0; bit < bytes * 8; ++bit) {
      const std::byte flip{static_cast<uint8_t>(1 << bit % 8)};
      at[bit / 8] ^= flip;
      const std::vector<std::byte> before(view.mapped, view.mapped + view.bytes);
      ASSERT_FALSE(check_region(view, GetParam()).problems.empty()) << what << ", bit " << bit;
      ASSERT_EQ(try_open().error(), EILSEQ) << what << ", bit " << bit;
      ASSERT_EQ(std::memcmp(before.data(), view.mapped, view.bytes), 0) << what << ", bit " << bit;
      at[bit / 8] ^= flip;
    }
  };
  for (uint64_t chunk = 0; chunk < view.chunk_count(); ++chunk)
    expect_found(reinterpret_cast<std::byte*>(view.chunks() + chunk), sizeof(uint64_t), "a chunk's word");
  for (uint32_t slot = 0; slot < view.header().slots; ++slot)
    expect_found(reinterpret_cast<std::byte*>(&view.slot(slot).word), sizeof(uint64_t), "a slot's word");
  for (const uint32_t root : {0u, 1u, kRootsMax - 1})
    expect_found(reinterpret_cast<std::byte*>(view.roots() + root), sizeof(Root), "a root");
  expect_found(reinterpret_cast<std::byte*>(&view.header().epoch), sizeof(uint64_t), "the epoch");
  open();
  expect_all(1);
}

TEST_P(RegionTest, an_object_whose_state_is_neither_is_not_handed_out_and_its_chunk_neither) {
  const uint64_t at = *regions_->allocate(thread_, 0, 700);
  const RegionView& view = memory_.view();
  const uint64_t chunk = (at - view.header().base - view.header().heap_offset) / kChunkBytes;
  std::byte* const states = view.chunk_at(chunk);
  const std::byte whole = states[3];
  for (unsigned bit = 0; bit < 8; ++bit) {
    states[3] = whole ^ std::byte{static_cast<uint8_t>(1 << bit)};
    EXPECT_EQ(check_region(view, GetParam()).problems.size(), 1u);
    open();  // states of small objects are looked at when one is asked for
    for (int twice = 0; twice < 2; ++twice) {
      const auto made = regions_->allocate(thread_, 0, 700);
      EXPECT_EQ(made.status().error(), EILSEQ) << made.status().message();
      EXPECT_NE(made.status().message().find("chunk " + std::to_string(chunk)), std::string::npos);
    }
    EXPECT_EQ(regions_->free(thread_, at).error(), EILSEQ);
    EXPECT_TRUE(regions_->allocate(thread_, 0, 20)) << "other chunks are whole";
  }
  states[3] = whole;
  open();
  EXPECT_TRUE(regions_->free(thread_, at));
}

TEST_P(RegionTest, a_page_of_states_or_words_that_reads_as_zeros_is_damage) {
  const uint64_t at = *regions_->allocate(thread_, 0, 16);
  regions_.reset();
  const RegionView& view = memory_.view();
  const uint64_t chunk = (at - view.header().base - view.header().heap_offset) / kChunkBytes;
  for (std::byte* const page :
       {view.chunk_at(chunk), reinterpret_cast<std::byte*>(view.chunks()),
        reinterpret_cast<std::byte*>(view.roots()), reinterpret_cast<std::byte*>(&view.slot(0))}) {
    // As far as it is looked at: the rest of a chunk's page is objects.
    const size_t bytes = page == view.chunk_at(chunk) ? objects_of(0) : sizeof(Root);
    const std::vector<std::byte> before(page, page + bytes);
    std::memset(page, 0, bytes);
    EXPECT_FALSE(check_region(view, GetParam()).problems.empty());
    std::memcpy(page, before.data(), bytes);
  }
  EXPECT_TRUE(check_region(view, GetParam()).problems.empty());
}

TEST_P(RegionTest, a_section_without_room_for_its_log_can_be_undone_and_the_region_goes_on) {
  // All room but for the log's first segment.
  std::vector<uint64_t> smaller{*regions_->allocate(thread_, 0, 8192)};
  while (regions_->allocate(thread_, 0, 40000)) {
  }
  auto many = regions_->allocate(thread_, 0, 8192);
  for (; many; many = regions_->allocate(thread_, 0, 8192)) smaller.push_back(*many);
  ASSERT_GT(smaller.size(), 4u);
  regions_->begin(thread_);
  Status status;
  for (uint64_t i = 0; i < 8192 * smaller.size() && status; i += 8)
    status = regions_->before_store(thread_, smaller[i / 8192] + i % 8192, 8);
  EXPECT_EQ(status.error(), ENOSPC) << status.message();
  EXPECT_TRUE(regions_->restore(thread_));
  EXPECT_TRUE(regions_->end(thread_));
  fill(5);
  open();
  expect_all(5);
}

TEST_P(RegionTest, a_failed_write_stops_the_region_and_loses_nothing_committed) {
  regions_->begin(thread_);
  for (uint64_t i = 0; i < kWords; ++i) ASSERT_TRUE(put(i, 3));
  memory_.fail_writes(true);
  EXPECT_EQ(regions_->end(thread_).error(), EIO);
  memory_.fail_writes(false);
  regions_->begin(thread_);
  EXPECT_EQ(put(0, 4).error(), EIO);
  (void)regions_->end(thread_);
  memory_.lose_power();
  open();
  expect_all(1);
}

TEST_P(RegionTest, large_stores_are_undone_as_a_whole) {
  constexpr uint64_t kBytes = 3 * kPayloadMax + 100;
  const uint64_t at = *regions_->allocate(thread_, 0, kBytes);
  regions_->begin(thread_);
  ASSERT_TRUE(regions_->before_store(thread_, at, kBytes));
  std::memset(reinterpret_cast<void*>(at), 7, kBytes);
  ASSERT_TRUE(regions_->end(thread_));
  regions_->begin(thread_);
  ASSERT_TRUE(regions_->before_store(thread_, at + 3, kBytes - 3));
  std::memset(reinterpret_cast<void*>(at + 3), 8, kBytes - 3);
  ASSERT_TRUE(regions_->region(0)->sections().persist());
  memory_.lose_power();
  open();
  for (uint64_t i = 0; i < kBytes; ++i) ASSERT_EQ(*reinterpret_cast<uint8_t*>(at + i), 7) << i;
}

TEST_P(RegionTest, neighbouring_bytes_that_another_section_has_committed_are_not_restored) {
  Thread other;
  regions_->begin(thread_);
  regions_->begin(other);
  auto* bytes = reinterpret_cast<uint8_t*>(words_);
  for (unsigned i = 0; i < 64; ++i) {
    ASSERT_TRUE(regions_->before_store(i % 2 == 0 ? thread_ : other, words_ + i, 1));
    bytes[i] = static_cast<uint8_t>(i % 2 == 0 ? 2 : 3);
  }
  ASSERT_TRUE(regions_->end(other));
  memory_.lose_power();
  open();
  for (unsigned i = 0; i < 64; ++i) ASSERT_EQ(bytes[i], i % 2 == 0 ? (i % 8 == 0 ? 1 : 0) : 3) << i;
}

TEST_P(RegionTest, what_is_stored_outside_of_sections_is_durable_after_a_sync) {
  ASSERT_TRUE(put(3, 77));
  ASSERT_TRUE(regions_->sync(thread_));
  memory_.lose_power();
  open();
  EXPECT_EQ(word(3), 77u);
}

TEST_P(RegionTest, one_thread_more_than_slots_is_told) {
  Thread second, third;
  regions_->begin(second);
  ASSERT_TRUE(regions_->before_store(second, words_, 8));
  regions_->begin(third);
  EXPECT_EQ(regions_->before_store(third, words_, 8).error(), EUSERS);
  ASSERT_TRUE(regions_->end(third));
  ASSERT_TRUE(regions_->end(second));
  ASSERT_TRUE(regions_->ended(second));
  regions_->begin(third);
  EXPECT_TRUE(regions_->before_store(third, words_, 8));
  ASSERT_TRUE(regions_->end(third));
}

TEST_P(RegionTest, a_section_waits_for_what_it_has_seen) {
  Thread other;
  int outer = 0;
  see_what_is_unfinished(other, &outer);
  Sections& sections = regions_->region(0)->sections();
  EXPECT_EQ(sections.pending(), 1u);
  ASSERT_TRUE(regions_->releasing(thread_, &outer));
  EXPECT_EQ(sections.pending(), 0u);
  memory_.lose_power();
  open();
  EXPECT_EQ(word(0), 11u);
}

TEST_P(RegionTest, a_complete_section_that_has_seen_an_unfinished_one_goes_with_it) {
  Thread other;
  int outer = 0;
  see_what_is_unfinished(other, &outer);
  memory_.lose_power();
  open();
  EXPECT_EQ(regions_->region(0)->recovery().sections_undone, 2u);
  EXPECT_EQ(word(0), 1u);
}

// Two readers at once: who leaves with nothing unfinished must not take away what the other has handed on.
TEST_P(RegionTest, what_one_reader_hands_on_stays_when_another_leaves) {
  Thread reader;
  int lock = 0, outer = 0;
  ASSERT_TRUE(regions_->acquired(reader, &lock));
  ASSERT_TRUE(regions_->acquired(thread_, &outer));
  ASSERT_TRUE(regions_->acquired(thread_, &lock));
  ASSERT_TRUE(put(0, 10));
  ASSERT_TRUE(regions_->releasing(thread_, &lock));
  ASSERT_TRUE(regions_->releasing(reader, &lock));
  ASSERT_TRUE(regions_->acquired(reader, &lock));
  ASSERT_TRUE(regions_->before_store(reader, words_, 8));
  word(0) = 11;
  ASSERT_TRUE(regions_->releasing(reader, &lock));
  EXPECT_EQ(regions_->region(0)->sections().pending(), 1u);
  memory_.lose_power();
  open();
  EXPECT_EQ(word(0), 1u);
}

TEST_P(RegionTest, a_root_that_an_unfinished_section_removed_makes_room_for_none) {
  Thread other;
  regions_->begin(thread_);
  ASSERT_TRUE(regions_->set_root(thread_, 0, "words", 0));
  ASSERT_TRUE(regions_->set_root(other, 0, "others", words_));
  ASSERT_TRUE(regions_->restore(thread_));
  ASSERT_TRUE(regions_->end(thread_));
  EXPECT_EQ(regions_->region(0)->roots().get("words"), words_);
  EXPECT_EQ(regions_->region(0)->roots().get("others"), words_);
}

TEST_P(RegionTest, a_lock_from_before_the_region_means_nothing) {
  int before = 0, lock = 0;
  ASSERT_TRUE(regions_->acquired(thread_, &lock));
  ASSERT_TRUE(put(0, 5));
  ASSERT_TRUE(regions_->releasing(thread_, &before));
  ASSERT_TRUE(put(1, 6));
  memory_.lose_power();
  open();
  expect_all(1);
}

TEST_P(RegionTest, a_section_that_is_undone_twice_gives_back_all_that_it_allocated) {
  const uint64_t objects = check_region(memory_.view(), GetParam()).objects;
  regions_->begin(thread_);
  const uint64_t first = *regions_->allocate(thread_, 0, 8192);
  ASSERT_TRUE(regions_->restore(thread_));
  const uint64_t second = *regions_->allocate(thread_, 0, 8192);
  ASSERT_TRUE(regions_->restore(thread_));
  ASSERT_TRUE(regions_->end(thread_));
  EXPECT_EQ(check_region(memory_.view(), GetParam()).objects, objects);
  std::set<uint64_t> again;
  for (int i = 0; i < 7; ++i) again.insert(*regions_->allocate(thread_, 0, 8192));
  EXPECT_TRUE(again.contains(first) && again.contains(second));
}

TEST_P(RegionTest, fresh_memory_is_not_logged) {
  regions_->begin(thread_);
  const uint64_t at = *regions_->allocate(thread_, 0, 50000);
  const uint64_t records = regions_->region(0)->sections().counts().records;
  ASSERT_TRUE(regions_->before_store(thread_, at, 50000));
  ASSERT_TRUE(regions_->before_store(thread_, at + 20, 8));
  EXPECT_EQ(regions_->region(0)->sections().counts().records, records);
  ASSERT_TRUE(regions_->end(thread_));
}

TEST_P(RegionTest, a_slot_that_goes_to_another_thread_keeps_its_time) {
  Thread first, other;
  int outer = 0, inner = 0;
  // The slot's first thread has seen what thread_ has not ended, and ends.
  ASSERT_TRUE(regions_->acquired(thread_, &outer));
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(regions_->acquired(thread_, &inner));
    ASSERT_TRUE(put(1, 5));
    ASSERT_TRUE(regions_->releasing(thread_, &inner));
  }
  ASSERT_TRUE(regions_->acquired(first, &inner));
  ASSERT_TRUE(regions_->before_store(first, words_, 8));
  word(0) = 20;
  ASSERT_TRUE(regions_->releasing(first, &inner));
  ASSERT_TRUE(regions_->ended(first));
  regions_->begin(other);
  ASSERT_TRUE(regions_->before_store(other, words_, 8));
  word(0) = 30;
  ASSERT_TRUE(regions_->end(other));
  ASSERT_TRUE(regions_->region(0)->sections().persist());
  memory_.lose_power();
  open();
  EXPECT_EQ(word(0), 1u);
}

TEST_P(RegionTest, bytes_outside_of_the_heap_are_refused) {
  const Header& header = memory_.view().header();
  regions_->begin(thread_);
  for (const uint64_t at : {header.base, header.base + header.logs_offset,
                            header.base + memory_.view().bytes - 4, header.base + memory_.view().bytes + 64})
    EXPECT_EQ(regions_->before_store(thread_, at, 8).error(), EFAULT) << at - header.base;
  EXPECT_EQ(regions_->before_store(thread_, words_, SIZE_MAX - 10).error(), EFAULT);
  ASSERT_TRUE(regions_->end(thread_));
}

}  // namespace
}  // namespace spw::durable
