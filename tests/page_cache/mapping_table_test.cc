#include "page_cache/mapping_table.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>

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
  table.give_back(*part, 0, 0);
  part = table.take(part->end, 3 * kPage);
  EXPECT_EQ(part->begin, page(13));
  EXPECT_EQ(part->end, page(14));
  table.give_back(*part, 0, 0);
  part = table.take(page(103), 100 * kPage);
  EXPECT_EQ(part->begin, page(103));
  EXPECT_EQ(part->end, page(110));
  EXPECT_EQ(part->offset_bytes, 10 * kPage);
  table.give_back(*part, 0, 0);
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
  table.give_back(*part, 0, 0);
  remover.join();
  EXPECT_TRUE(table.take(0, kPage)) << "what is left may be taken again";
}

// Of a mapping that there is, as advice is the kernel's business.
TEST(MappingTable, long_runs_get_readahead_and_short_ones_lose_it_unless_the_program_says_otherwise) {
  constexpr size_t kBytes = 1 << 20;
  void* memory = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Mapping whole;
  whole.begin = reinterpret_cast<uintptr_t>(memory);
  whole.end = whole.begin + kBytes;
  MappingTable table;
  table.add(whole);
  const auto note = [&](uint64_t pages, uint64_t runs) {
    auto part = table.take(0, kBytes);
    table.give_back(*part, pages, runs);
  };
  EXPECT_FALSE(table.reads_ahead(whole.begin));
  note(512, 512);
  EXPECT_FALSE(table.reads_ahead(whole.begin));
  for (int i = 0; i < 8; ++i) note(512, 2);
  EXPECT_TRUE(table.reads_ahead(whole.begin));
  for (int i = 0; i < 8; ++i) note(512, 256);
  EXPECT_FALSE(table.reads_ahead(whole.begin));
  table.note_advice(whole.begin, whole.end);
  for (int i = 0; i < 8; ++i) note(512, 2);
  EXPECT_FALSE(table.reads_ahead(whole.begin));
  munmap(memory, kBytes);
}

}  // namespace
}  // namespace spw::page_cache
