#include "page_cache/mapping_table.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <span>
#include <thread>
#include <vector>

#include "../thread_states.h"

namespace spw::page_cache {
namespace {

constexpr uintptr_t kBase = 0x10000000, kPage = 4096;

Mapping mapping(uintptr_t first_page, uintptr_t pages, uint64_t offset_pages = 0) {
  Mapping made;
  made.begin = kBase + first_page * kPage;
  made.end = made.begin + pages * kPage;
  made.offset_bytes = offset_pages * kPage;
  return made;
}

uintptr_t page(uintptr_t number) { return kBase + number * kPage; }

TEST(MappingTable, parts_are_taken_in_order_of_addresses_and_with_their_place_in_the_file) {
  MappingTable table;
  table.add(mapping(100, 10, 7));
  table.add(mapping(10, 4));
  auto part = table.take(0, 3 * kPage);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->begin, page(10));
  EXPECT_EQ(part->end, page(13));
  table.give_back(*part);
  part = table.take(part->end, 3 * kPage);
  EXPECT_EQ(part->begin, page(13));
  EXPECT_EQ(part->end, page(14));
  table.give_back(*part);
  part = table.take(page(103), 100 * kPage);
  EXPECT_EQ(part->begin, page(103));
  EXPECT_EQ(part->end, page(110));
  EXPECT_EQ(part->offset_bytes, 10 * kPage);
  table.give_back(*part);
  EXPECT_FALSE(table.take(page(110), kPage));
}

TEST(MappingTable, what_is_removed_of_the_middle_leaves_both_ends) {
  MappingTable table;
  table.add(mapping(0, 10, 5));
  const auto removed = table.remove(page(3), page(6));
  ASSERT_EQ(removed.size(), 1u);
  EXPECT_EQ(removed[0].begin, page(3));
  EXPECT_EQ(removed[0].end, page(6));
  EXPECT_EQ(removed[0].offset_bytes, 8 * kPage);
  EXPECT_FALSE(table.overlaps(page(3), page(6)));
  EXPECT_TRUE(table.overlaps(page(2), page(6)));
  EXPECT_TRUE(table.overlaps(page(3), page(7)));
  const auto end = table.find(page(8));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->begin, page(6));
  EXPECT_EQ(end->offset_bytes, 11 * kPage);
  EXPECT_EQ(table.remove(0, UINTPTR_MAX).size(), 2u);
  EXPECT_TRUE(table.is_empty());
}

TEST(MappingTable, removing_waits_until_what_is_taken_is_given_back) {
  MappingTable table;
  table.add(mapping(0, 10));
  auto part = table.take(0, kPage);
  std::atomic<bool> removed{false};
  std::thread remover([&] {
    (void)table.remove(page(5), page(6));
    removed = true;
  });
  tests::wait_until_others_sleep();
  EXPECT_FALSE(removed);
  EXPECT_FALSE(table.take(0, kPage)) << "what is about to go may not be taken any more";
  table.give_back(*part);
  remover.join();
  EXPECT_TRUE(table.take(0, kPage)) << "what is left may be taken again";
}

// Of a mapping that there is, as advice is the kernel's business.
class MappingAdvice : public testing::Test {
 protected:
  static constexpr size_t kUnits = 16, kBytes = kUnits * MappingTable::kUnitBytes;

  void SetUp() override {
    memory_ = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(memory_, MAP_FAILED);
    Mapping whole;
    whole.begin = begin();
    whole.end = whole.begin + kBytes;
    table_.add(whole);
  }
  void TearDown() override { munmap(memory_, kBytes); }

  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(memory_); }
  bool reads_ahead() const { return table_.reads_ahead(begin()); }
  // In two parts, as a large mapping is looked at.
  void look() {
    for (size_t half : {size_t{0}, kUnits / 2}) {
      auto part = table_.take(begin() + half * MappingTable::kUnitBytes, kBytes / 2);
      table_.give_back(*part, std::span(present_).subspan(half, kUnits / 2));
    }
  }
  void come_to(size_t unit, uint16_t pages) {
    present_[unit] = static_cast<uint16_t>(present_[unit] + pages);
  }
  void come_all_over(uint16_t pages) {
    for (size_t unit = 0; unit < kUnits; ++unit) come_to(unit, pages);
  }

  MappingTable table_;
  std::vector<uint16_t> present_ = std::vector<uint16_t>(kUnits);
  void* memory_ = nullptr;
};

TEST_F(MappingAdvice, a_scan_with_gaps_is_read_ahead_until_pages_come_all_over_the_mapping) {
  look();
  EXPECT_FALSE(reads_ahead());
  come_to(7, 90);  // on both sides of where a part ends
  come_to(8, 70);
  look();
  EXPECT_TRUE(reads_ahead());
  look();
  EXPECT_TRUE(reads_ahead()) << "nothing has come, which says nothing";
  come_all_over(20);
  look();
  EXPECT_FALSE(reads_ahead());
}

TEST_F(MappingAdvice, pages_all_over_the_mapping_are_not_read_ahead_however_many_they_are) {
  for (int i = 0; i < 4; ++i) {
    come_all_over(100);
    look();
    EXPECT_FALSE(reads_ahead());
  }
}

TEST_F(MappingAdvice, pages_that_are_present_for_long_say_nothing) {
  come_all_over(500);
  look();
  come_to(3, 8);
  for (size_t unit = 4; unit < kUnits; ++unit) come_to(unit, 8);
  look();
  EXPECT_FALSE(reads_ahead());
}

TEST_F(MappingAdvice, what_the_program_has_advised_stays) {
  table_.note_advice(begin(), begin() + kBytes);
  come_to(7, 400);
  look();
  EXPECT_FALSE(reads_ahead());
}

TEST_F(MappingAdvice, what_is_left_of_a_mapping_is_judged_from_its_next_look_on) {
  table_.remove(begin(), begin() + kBytes / 2);
  const auto look_at_rest = [&] {
    auto part = table_.take(begin(), kBytes);
    table_.give_back(*part, std::span(present_).subspan(kUnits / 2));
    return table_.reads_ahead(begin() + kBytes / 2);
  };
  come_to(kUnits - 1, 300);
  EXPECT_FALSE(look_at_rest()) << "it may have been there before";
  come_to(kUnits - 1, 100);
  EXPECT_TRUE(look_at_rest());
}

}  // namespace
}  // namespace spw::page_cache
