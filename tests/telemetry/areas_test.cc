#include "telemetry/areas.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>

namespace spw::telemetry {
namespace {

class Areas : public testing::Test {
 protected:
  Areas() : table_(std::make_unique<AreaTable>()) { place_areas(table_.get()); }
  ~Areas() override { place_areas(nullptr); }
  std::vector<Area> all() const {
    std::vector<Area> areas = areas_in(*table_);
    std::sort(areas.begin(), areas.end(), [](const Area& a, const Area& b) { return a.begin < b.begin; });
    return areas;
  }

  std::unique_ptr<AreaTable> table_;
};

TEST_F(Areas, what_is_noted_is_seen_until_it_is_forgotten) {
  note_area(4 << 20, 2 << 20);
  note_area(64 << 20, 1 << 20, "file:/data/index");
  ASSERT_EQ(all().size(), 2u);
  EXPECT_EQ(all()[0].begin, 4u << 20);
  EXPECT_EQ(all()[0].bytes, 2u << 20);
  EXPECT_EQ(all()[0].site, 0u);
  EXPECT_EQ(all()[1].name, "file:/data/index");
  forget_areas(0, 32 << 20);
  ASSERT_EQ(all().size(), 1u);
  EXPECT_EQ(all()[0].begin, 64u << 20);
  forget_areas(65 << 20, 1 << 20);  // begins behind its beginning: a part of it is gone, no more
  EXPECT_EQ(all().size(), 1u);
}

TEST_F(Areas, small_ones_and_too_many_are_left_out) {
  note_area(1 << 20, kAreaBytesMin - 1);
  EXPECT_TRUE(all().empty());
  for (uint64_t i = 1; i <= kAreasMax + 10; ++i) note_area(i << 20, kAreaBytesMin);
  EXPECT_EQ(all().size(), kAreasMax);
  forget_areas(1 << 20, kAreaBytesMin);
  note_area(uint64_t{1} << 40, kAreaBytesMin, std::string(1000, 'x'));
  EXPECT_EQ(all().back().begin, uint64_t{1} << 40) << "there is room again";
  EXPECT_EQ(all().back().name.size(), AreaSlot::kNameBytes - 1);
}

TEST_F(Areas, the_outermost_site_counts_and_each_thread_has_its_own) {
  const int here = 0, inner = 0;
  {
    const AllocationSite site(&here);
    const AllocationSite nested(&inner);
    note_area(1 << 20, kAreaBytesMin);
    std::thread([] { note_area(2 << 20, kAreaBytesMin); }).join();
  }
  note_area(3 << 20, kAreaBytesMin);
  ASSERT_EQ(all().size(), 3u);
  EXPECT_EQ(all()[0].site, reinterpret_cast<uintptr_t>(&here));
  EXPECT_EQ(all()[1].site, 0u);
  EXPECT_EQ(all()[2].site, 0u);
}

TEST_F(Areas, come_and_go_from_many_threads) {
  std::vector<std::thread> threads;
  for (uint64_t t = 1; t <= 4; ++t)
    threads.emplace_back([t] {
      for (uint64_t i = 0; i < 2000; ++i) {
        note_area((t << 30) + (i << 20), kAreaBytesMin, std::to_string(t));
        if (i % 2 == 0) forget_areas(t << 30, uint64_t{1} << 30);
      }
      forget_areas(t << 30, uint64_t{2000} << 20);
    });
  for (int look = 0; look < 200; ++look)
    for (const Area& area : all()) {
      EXPECT_EQ(area.bytes, kAreaBytesMin);
      EXPECT_LE(area.name.size(), 1u);
    }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(all().empty());
}

TEST(NoAreas, nothing_is_noted_where_nobody_can_look) {
  note_area(1 << 20, kAreaBytesMin);
  forget_areas(1 << 20, kAreaBytesMin);
}

}  // namespace
}  // namespace spw::telemetry
