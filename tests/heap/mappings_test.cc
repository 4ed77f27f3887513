#include "heap/mappings.h"

#include <gtest/gtest.h>

#include "../region/fakes.h"
#include "base/rng.h"
#include "heap/heap.h"

namespace spw::heap {
namespace {

using region::Kind;
using testing::FakeStore;
using testing::RecordedRanges;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kSpace = 4 * kGiB;

struct MappingsTest : ::testing::TestWithParam<unsigned> {
  MappingsTest() {
    auto made_map = region::RegionMap::create(GetParam(), kSpace, spill);
    EXPECT_TRUE(made_map.is_ok());
    map = std::move(*made_map);
    map->attach(&ranges);
    auto made = Heap::create(*map, kSpace);
    EXPECT_TRUE(made.is_ok());
    heap = std::move(*made);
  }
  ~MappingsTest() override {
    heap->check_invariants();
    heap.reset();
    map.reset();
  }
  Mappings& mappings() { return heap->mappings(); }
  uint64_t block() const { return uint64_t{1} << GetParam(); }

  FakeStore spill{kSpace};
  RecordedRanges ranges;
  std::unique_ptr<region::RegionMap> map;
  std::unique_ptr<Heap> heap;
};

TEST_P(MappingsTest, a_mapping_is_found_by_any_address_in_it) {
  uintptr_t a = mappings().map_anonymous(10 * kPage);
  EXPECT_EQ(mappings().find(a + 9 * kPage + 17, a + 10 * kPage).address, a);
  EXPECT_EQ(mappings().find(a + 10 * kPage, a + 11 * kPage).kind, Kind::kNone);
  mappings().unmap(a, 10 * kPage);
  EXPECT_EQ(mappings().find(a, a + 10 * kPage).kind, Kind::kNone);
  EXPECT_EQ(map->live_bytes(), 0u);
}

TEST_P(MappingsTest, holes_are_filled_in_any_order_and_become_one_mapping) {
  Rng rng(GetParam() + 7);
  for (int round = 0; round < 50; ++round) {
    const uint64_t pages = 1 + rng.below(200);
    const uintptr_t a = mappings().map_anonymous(pages * kPage);
    std::vector<bool> is_mapped(pages, true);
    for (int step = 0; step < 40; ++step) {
      const uint64_t first = rng.below(pages), count = 1 + rng.below(pages - first);
      const bool maps = rng.below(2) == 0;
      // Where all of a unit was unmapped another mapping could be by now; here is none.
      if (maps)
        ASSERT_TRUE(mappings().map_at(a + first * kPage, count * kPage));
      else
        mappings().unmap(a + first * kPage, count * kPage);
      std::fill_n(is_mapped.begin() + static_cast<long>(first), count, maps);
    }
    for (uint64_t i = 0; i < pages; ++i)
      ASSERT_EQ(mappings().find(a + i * kPage, a + (i + 1) * kPage).kind == Kind::kAnonymous, is_mapped[i]);
    ASSERT_TRUE(mappings().map_at(a, pages * kPage));
    EXPECT_EQ(mappings().find(a, a + 1).bytes, pages * kPage);
    EXPECT_EQ(mappings().count(), 1u);
    mappings().check_invariants();
    mappings().unmap(a, pages * kPage);
    EXPECT_EQ(map->live_bytes(), 0u);
  }
}

TEST_P(MappingsTest, nothing_is_mapped_where_something_else_is) {
  void* const object = heap->allocate(64 << 20).address;
  const auto at = reinterpret_cast<uintptr_t>(object);
  EXPECT_FALSE(mappings().map_at(at, kPage));
  EXPECT_FALSE(mappings().map_at(at - 4 * block(), 4 * block() + kPage));
  auto file = mappings().map_file(10 * kPage, {std::make_shared<FakeStore>(kSpace), 0, Kind::kPrivateFile});
  ASSERT_TRUE(file.is_ok());
  EXPECT_FALSE(mappings().map_at(*file, kPage));
  mappings().unmap(*file, kPage);
  EXPECT_FALSE(mappings().map_at(*file, kPage));
  mappings().unmap(*file, 10 * kPage);
  heap->free(object);
  EXPECT_EQ(map->live_bytes(), 0u);
}

TEST_P(MappingsTest, unmapping_page_by_page_in_any_order_gives_everything_back) {
  Rng rng(GetParam());
  for (int round = 0; round < 20; ++round) {
    uint64_t pages = 1 + rng.below(100);
    uintptr_t a = mappings().map_anonymous(pages * kPage);
    std::vector<uint64_t> order(pages);
    for (uint64_t i = 0; i < pages; ++i) order[i] = i;
    for (uint64_t i = pages; i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
    for (uint64_t page : order) mappings().unmap(a + page * kPage, kPage);
    EXPECT_EQ(map->live_bytes(), 0u);
    EXPECT_EQ(mappings().count(), 0u);
  }
}

TEST_P(MappingsTest, unmapping_the_middle_leaves_two_mappings) {
  uintptr_t a = mappings().map_anonymous(8 * block());
  mappings().unmap(a + 3 * block(), 2 * block());
  EXPECT_EQ(mappings().count(), 2u);
  EXPECT_EQ(mappings().find(a, a + 1).bytes, 3 * block());
  EXPECT_EQ(mappings().find(a + 3 * block(), a + 8 * block()).address, a + 5 * block());
  EXPECT_EQ(map->kind_at(a + 3 * block()), Kind::kNone);
  EXPECT_EQ(map->kind_at(a + 5 * block()), Kind::kAnonymous);
  mappings().unmap(a, 8 * block());
  EXPECT_EQ(map->live_bytes(), 0u);
}

TEST_P(MappingsTest, one_unmap_may_cover_several_mappings) {
  uintptr_t a = mappings().map_anonymous(block());
  uintptr_t b = mappings().map_anonymous(block());
  ASSERT_EQ(b, a + block());
  mappings().unmap(a, 2 * block());
  EXPECT_EQ(mappings().count(), 0u);
}

TEST_P(MappingsTest, grows_in_place_until_something_is_in_the_way) {
  uintptr_t a = mappings().map_anonymous(kPage);
  EXPECT_TRUE(mappings().extend(a, kPage, 3 * block() + kPage));
  EXPECT_EQ(mappings().find(a, a + 1).bytes, 3 * block() + kPage);
  EXPECT_EQ(map->live_bytes(), 3 * block() + round_up(kPage, block()));
  uintptr_t b = mappings().map_anonymous(kPage);
  EXPECT_EQ(mappings().extend(a, 3 * block() + kPage, b - a + kPage), false);
  mappings().unmap(a, 3 * block() + kPage);
  mappings().unmap(b, kPage);
  EXPECT_EQ(map->live_bytes(), 0u);
}

TEST_P(MappingsTest, a_file_mapping_keeps_its_chunks_until_all_of_it_is_unmapped) {
  auto file = map->adopt(std::make_unique<FakeStore>(16 * kMiB));
  auto mapped = mappings().map_file(5 * kMiB, {file, 0, Kind::kSharedFile});
  ASSERT_TRUE(mapped.is_ok());
  uintptr_t a = *mapped;
  EXPECT_EQ(a % region::kChunkBytes, 0u);
  EXPECT_EQ(map->kind_at(a + 5 * kMiB - 1), Kind::kSharedFile);
  mappings().unmap(a, kMiB);
  EXPECT_EQ(map->kind_at(a + kMiB), Kind::kSharedFile);
  EXPECT_FALSE(mappings().extend(a + 4 * kMiB, kMiB, 6 * kMiB));
  EXPECT_TRUE(mappings().extend(a + 4 * kMiB, kMiB, 2 * kMiB));
  EXPECT_EQ(map->kind_at(a + 6 * kMiB - 1), Kind::kSharedFile);
  file.reset();
  mappings().unmap(a, 6 * kMiB);
  EXPECT_EQ(ranges.forgotten.size(), 1u);
  EXPECT_EQ(map->live_bytes(), 0u);
}

TEST_P(MappingsTest, addresses_of_a_file_mapping_are_not_handed_out_again) {
  auto file = map->adopt(std::make_unique<FakeStore>(16 * kMiB));
  uintptr_t lowest = UINTPTR_MAX;
  for (int i = 0; i < 10; ++i) {
    auto mapped = mappings().map_file(3 * kMiB, {file, 0, Kind::kPrivateFile});
    ASSERT_TRUE(mapped.is_ok());
    EXPECT_LT(*mapped, lowest);
    lowest = *mapped;
    mappings().unmap(*mapped, 3 * kMiB);
  }
  EXPECT_EQ(mappings().map_file(kSpace, {file, 0, Kind::kPrivateFile}).status().error(), ENOMEM);
}

TEST_P(MappingsTest, sizes_near_the_end_of_their_type_are_refused) {
  auto file = map->adopt(std::make_unique<FakeStore>(16 * kMiB));
  uintptr_t a = mappings().map_anonymous(kPage);
  for (uint64_t bytes : {UINT64_MAX, UINT64_MAX - kPage + 1, UINT64_MAX - 16 * kMiB}) {
    EXPECT_EQ(mappings().map_anonymous(bytes), 0u);
    EXPECT_EQ(mappings().map_file(bytes, {file, 0, Kind::kPrivateFile}).status().error(), ENOMEM);
    EXPECT_FALSE(mappings().extend(a, kPage, bytes));
  }
  EXPECT_EQ(mappings().find(a, a + 1).bytes, kPage);
}

// The cache may hold on to a block of that memory, as zeros (SharedCache::discard).
TEST_P(MappingsTest, a_file_is_never_mapped_where_other_memory_was) {
  auto file = map->adopt(std::make_unique<FakeStore>(2 * kGiB));
  uintptr_t memory = mappings().map_anonymous(3 * kGiB);
  mappings().unmap(memory, 3 * kGiB);
  EXPECT_EQ(mappings().map_file(2 * kGiB, {file, 0, Kind::kSharedFile}).status().error(), ENOMEM);
  auto mapped = mappings().map_file(kGiB / 2, {file, 0, Kind::kSharedFile});
  ASSERT_TRUE(mapped.is_ok());
  EXPECT_GE(*mapped, memory + 3 * kGiB);
  EXPECT_EQ(mappings().map_anonymous(3 * kGiB), memory) << "memory gets them as before";
}

TEST_P(MappingsTest, a_file_does_not_grow_to_where_other_memory_was) {
  auto file = map->adopt(std::make_unique<FakeStore>(16 * kMiB));
  auto mapped = mappings().map_file(2 * kMiB, {file, 0, Kind::kSharedFile}, 8 * kMiB);
  ASSERT_TRUE(mapped.is_ok());
  uintptr_t memory = mappings().map_anonymous(2 * kMiB);
  mappings().unmap(memory, 2 * kMiB);
  EXPECT_FALSE(mappings().extend(*mapped, 2 * kMiB, 4 * kMiB));
}

INSTANTIATE_TEST_SUITE_P(blocks, MappingsTest, ::testing::Values(12, 16, 21));

}  // namespace
}  // namespace spw::heap
