#include "durable/combining/line_cache.h"

#include <gtest/gtest.h>

#include "writes.h"

namespace spw::durable {
namespace {

TEST(LineCache, flushes_the_least_recently_written) {
  FlushLog log;
  LineCache cache(2, 4, log);
  for (const Line line : {1u, 2u, 1u, 3u}) cache.written(line);
  EXPECT_EQ(log.lines, (std::vector<Line>{2}));
  cache.flush_all();
  EXPECT_EQ(log.lines, (std::vector<Line>{2, 1, 3}));
  EXPECT_EQ(cache.held(), 0u);
  cache.flush_all();
  EXPECT_EQ(log.lines.size(), 3u) << "nothing is flushed twice";
}

TEST(LineCache, a_smaller_size_flushes_the_oldest_at_once) {
  FlushLog log;
  LineCache cache(4, 4, log);
  for (const Line line : {1u, 2u, 3u, 4u, 2u}) cache.written(line);
  cache.resize(2);
  EXPECT_EQ(log.lines, (std::vector<Line>{1, 3}));
  cache.check_invariants();
  cache.resize(3);
  for (const Line line : {4u, 5u, 2u}) cache.written(line);
  EXPECT_EQ(log.lines.size(), 2u) << "three fit";
  cache.written(6);
  EXPECT_EQ(log.lines, (std::vector<Line>{1, 3, 4}));
}

TEST(LineCache, resized_at_any_time_it_is_what_a_list_says) {
  Rng rng(1);
  for (const uint32_t capacity : {1u, 2u, 3u, 8u, 50u, 333u}) {
    FlushLog log;
    LineCache cache(1, capacity, log);
    std::list<Line> held;
    std::vector<Line> expected;
    const auto shrink_to = [&](size_t most) {
      for (; held.size() > most; held.pop_back()) expected.push_back(held.back());
    };
    for (int step = 0; step < 60'000; ++step) {
      if (rng.below(100) == 0) {
        const auto size = static_cast<uint32_t>(1 + rng.below(capacity));
        cache.resize(size);
        shrink_to(size);
      } else if (rng.below(200) == 0) {
        cache.flush_all();
        shrink_to(0);
      } else {
        // Multiples of a power of two, as of stores with a stride, and lines next to each other.
        const Line line = rng.below(capacity * 2) << (rng.below(2) * 12);
        cache.written(line);
        const auto found = std::find(held.begin(), held.end(), line);
        if (found != held.end())
          held.erase(found);
        else
          shrink_to(cache.size() - 1);
        held.push_front(line);
      }
      ASSERT_EQ(cache.held(), held.size());
      if (step % 16 == 0) cache.check_invariants();
    }
    EXPECT_EQ(log.lines, expected) << capacity;
  }
}

}  // namespace
}  // namespace spw::durable
