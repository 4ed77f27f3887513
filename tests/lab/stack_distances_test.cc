#include "lab/locality/stack_distances.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>

#include "../locality/traces.h"

namespace spw::lab {
namespace {

uint64_t lru_misses(Trace trace, size_t size) {
  std::list<Datum> cached;
  uint64_t misses = 0;
  for (const Datum datum : trace) {
    const auto found = std::find(cached.begin(), cached.end(), datum);
    if (found != cached.end()) {
      cached.erase(found);
    } else {
      ++misses;
      if (cached.size() == size) cached.pop_back();
    }
    cached.push_front(datum);
  }
  return misses;
}

TEST(StackDistances, of_a_short_trace) {
  const std::vector<uint64_t> expected = {3, 1, 0, 3};
  EXPECT_EQ(stack_distances(locality::trace_of("abccbaa")), (std::vector<uint64_t>{3, 2, 1, 1}));
  EXPECT_EQ(stack_distances(locality::trace_of("abcabbc")), expected);
}

TEST(StackDistances, the_exact_curve_is_what_an_lru_cache_of_each_size_does) {
  Rng rng(1);
  for (int round = 0; round < 20; ++round) {
    const std::vector<Datum> trace = locality::random_trace(rng, 1 + rng.below(400), 1 + rng.below(60));
    const MissRatioCurve curve = exact_curve(trace);
    for (size_t size = 1; size < 70; ++size)
      ASSERT_NEAR(curve.at(static_cast<double>(size)) * static_cast<double>(trace.size()),
                  static_cast<double>(lru_misses(trace, size)), 1e-6);
  }
}

}  // namespace
}  // namespace spw::lab
