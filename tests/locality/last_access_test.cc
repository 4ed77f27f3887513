#include "locality/last_access.h"

#include <gtest/gtest.h>

#include <unordered_map>

#include "base/rng.h"

namespace spw::locality {
namespace {

TEST(LastAccess, is_what_a_map_says) {
  LastAccess last;
  std::unordered_map<Datum, uint64_t> expected;
  Rng rng(1);
  for (uint64_t time = 1; time < 100'000; ++time) {
    const Datum datum = rng.below(5000) << rng.below(3) * 20;
    ASSERT_EQ(last.exchange(datum, time), std::exchange(expected[datum], time));
    ASSERT_EQ(last.size(), expected.size());
  }
  last.for_each([&](const LastAccess::Entry& entry) {
    EXPECT_EQ(expected.at(entry.datum), entry.time);
    expected.erase(entry.datum);
  });
  EXPECT_TRUE(expected.empty());
}

TEST(LastAccess, forgets_what_is_not_kept_and_nothing_else) {
  LastAccess last;
  for (Datum datum = 0; datum < 1000; ++datum) last.exchange(datum, datum + 1);
  last.retain([](Datum datum) { return datum % 3 == 0; });
  EXPECT_EQ(last.size(), 334u);
  for (Datum datum = 0; datum < 1000; ++datum)
    EXPECT_EQ(last.exchange(datum, 9999), datum % 3 == 0 ? datum + 1 : 0) << datum;
}

TEST(LastAccess, what_is_too_old_counts_as_never_and_takes_no_room_for_long) {
  LastAccess last;
  std::unordered_map<Datum, uint64_t> expected;
  Rng rng(2);
  constexpr uint64_t kAge = 1000;
  for (uint64_t time = 1; time < 200'000; ++time) {
    const uint64_t oldest = time < kAge ? 0 : time - kAge + 1;
    // Data that come back soon, late or not at all.
    const Datum datum = time % 4 == 0 ? 1'000'000 + time : rng.below(3000);
    const uint64_t before = std::exchange(expected[datum], time);
    ASSERT_EQ(last.exchange(datum, time, oldest), before >= oldest ? before : 0) << time;
  }
  EXPECT_LE(last.memory_bytes(), 4096 * sizeof(LastAccess::Entry)) << "of at most 1000 accesses";
}

}  // namespace
}  // namespace spw::locality
