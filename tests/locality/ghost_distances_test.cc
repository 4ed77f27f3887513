#include "locality/ghost_distances.h"

#include <gtest/gtest.h>

#include <list>
#include <unordered_map>

#include "lab/locality/stack_distances.h"
#include "lab/policies/traces.h"

namespace spw::locality {
namespace {

// An LRU cache of so many data that tells the ghosts what leaves and
// comes. How many accesses missed data that had been there.
uint64_t run_lru(Trace trace, size_t size, GhostDistances& ghosts) {
  std::list<Datum> cached;
  std::unordered_map<Datum, std::list<Datum>::iterator> place;
  uint64_t misses = 0;
  for (const Datum datum : trace) {
    if (const auto found = place.find(datum); found != place.end()) {
      cached.splice(cached.begin(), cached, found->second);
      continue;
    }
    ++misses;
    if (ghosts.samples(datum)) ghosts.came(datum);
    if (cached.size() == size) {
      if (ghosts.samples(cached.back())) ghosts.left(cached.back());
      place.erase(cached.back());
      cached.pop_back();
    }
    cached.push_front(datum);
    place[datum] = cached.begin();
  }
  return misses;
}

MissRatioCurve curve_of(Trace trace, size_t size, GhostDistances& ghosts) {
  const auto misses = static_cast<double>(run_lru(trace, size, ghosts));
  const auto accesses = static_cast<double>(trace.size());
  MissRatioCurve curve;
  curve.add(static_cast<double>(size), misses / accesses);
  // Steps: nothing is saved between two distances.
  for (const GhostDistances::Saved& saved : ghosts.saved()) {
    curve.add(static_cast<double>(size) + saved.extra - 1, curve.points().back().miss_ratio);
    curve.add(static_cast<double>(size) + saved.extra, (misses - saved.misses) / accesses);
  }
  return curve;
}

TEST(GhostDistances, of_an_lru_cache_give_the_exact_curve_from_its_size_on) {
  for (const lab::NamedTrace& trace : lab::all_traces(100'000, 3000)) {
    GhostDistances ghosts(1, 200'000);  // all of them
    const MissRatioCurve curve = curve_of(trace.blocks, 100, ghosts), exact = lab::exact_curve(trace.blocks);
    for (size_t size = 100; size <= 100 + GapHistogram::kExactMax; ++size)
      ASSERT_NEAR(curve.at(static_cast<double>(size)), exact.at(static_cast<double>(size)), 1e-9)
          << trace.name << size;
    for (size_t size = 400; size < 4000; size += 100)
      ASSERT_NEAR(curve.at(static_cast<double>(size)), exact.at(static_cast<double>(size)), 0.01)
          << trace.name << size;
  }
}

TEST(GhostDistances, a_sample_in_bounded_memory_is_within_two_points_on_average) {
  double sum = 0;
  int traces = 0;
  for (const lab::NamedTrace& trace : lab::all_traces(1'000'000, 40'000)) {
    GhostDistances ghosts(1, 2000);
    const MissRatioCurve curve = curve_of(trace.blocks, 2000, ghosts), exact = lab::exact_curve(trace.blocks);
    EXPECT_LT(ghosts.rate(), 1) << trace.name;
    double error = 0;
    for (size_t size = 2000; size < 40'000; size += 1000)
      error += std::abs(curve.at(static_cast<double>(size)) - exact.at(static_cast<double>(size))) / 38;
    EXPECT_LE(error, 0.04) << trace.name;
    sum += error;
    ++traces;
  }
  EXPECT_LE(sum / traces, 0.02);
}

TEST(GhostDistances, go_on_being_exact_when_times_are_counted_anew) {
  const lab::NamedTrace trace = lab::zipf(300'000, 3000, 0.8, 1);
  GhostDistances ghosts(1, 3001);
  const MissRatioCurve curve = curve_of(trace.blocks, 100, ghosts), exact = lab::exact_curve(trace.blocks);
  for (size_t size = 100; size <= 100 + GapHistogram::kExactMax; ++size)
    ASSERT_NEAR(curve.at(static_cast<double>(size)), exact.at(static_cast<double>(size)), 1e-9) << size;
}

TEST(GhostDistances, take_the_smallest_memory_there_is) {
  GhostDistances ghosts(1, 1);
  for (Datum datum = 0; datum < 1000; ++datum) ghosts.left(datum % 7);
  for (Datum datum = 0; datum < 7; ++datum) ghosts.came(datum);
  EXPECT_LE(ghosts.saved().size(), 1u);
}

// Also when times were numbered anew in between, of which there are few with so little memory.
TEST(GhostDistances, it_is_known_of_each_whether_it_left_before_a_mark) {
  GhostDistances ghosts(1, 8);
  for (Datum datum = 0; datum < 4; ++datum) ghosts.left(datum);
  ghosts.mark();
  for (int round = 0; round < 100; ++round) ghosts.left(100);
  bool is_older = true;
  EXPECT_EQ(ghosts.came(100, &is_older), 1u);
  EXPECT_FALSE(is_older);
  for (Datum datum = 0; datum < 4; ++datum) {
    is_older = false;
    EXPECT_NE(ghosts.came(datum, &is_older), 0u) << datum;
    EXPECT_TRUE(is_older) << datum;
  }
}

TEST(GhostDistances, what_was_freed_does_not_come_back) {
  GhostDistances ghosts;
  ghosts.left(1);
  ghosts.left(2);
  ghosts.forget(1);
  ghosts.came(1);
  EXPECT_TRUE(ghosts.saved().empty());
  for (Datum datum = 10; datum < 20; ++datum) ghosts.left(datum);
  ghosts.forget(10, 1'000'000);
  ghosts.came(2);
  ASSERT_EQ(ghosts.saved().size(), 1u);
  EXPECT_DOUBLE_EQ(ghosts.saved()[0].extra, 1);
}

}  // namespace
}  // namespace spw::locality
