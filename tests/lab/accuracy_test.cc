// The estimates against the exact curve, on traces of all shapes: at most two points off on average.
#include <gtest/gtest.h>

#include <cstdio>

#include "lab/locality/reuse_sampler.h"
#include "lab/locality/stack_distances.h"
#include "lab/locality/whole_trace.h"
#include "lab/policies/traces.h"

namespace spw::lab {
namespace {

constexpr double kErrorMax = 0.02;
constexpr uint64_t kAccesses = 1'000'000;
constexpr uint32_t kData = 40'000;

class Accuracy : public testing::Test {
 protected:
  // `estimate`: from a trace to a curve.
  template <class Estimate>
  static void expect_accurate(Estimate estimate) {
    double sum = 0;
    int traces = 0;
    for (const NamedTrace& plain : all_traces(kAccesses, kData)) {
      for (const NamedTrace& trace : {plain, correlated(plain, 3, 1)}) {
        const MissRatioCurve exact = exact_curve(trace.blocks);
        const double error = mean_error(estimate(trace.blocks), exact, exact.largest_size());
        std::printf("  %-30s %.4f\n", trace.name.c_str(), error);
        EXPECT_LE(error, 2 * kErrorMax) << trace.name;
        sum += error;
        ++traces;
      }
    }
    EXPECT_LE(sum / traces, kErrorMax);
  }
};

TEST_F(Accuracy, of_timescale_reuse) {
  expect_accurate([](Trace trace) { return curve_of(timescale_reuse(trace)); });
}

TEST_F(Accuracy, of_a_sample_in_bounded_memory) {
  expect_accurate([](Trace trace) {
    ReuseSampler sampler;
    for (const Datum datum : trace) sampler.access(datum);
    return sampler.footprint().curve();
  });
}

}  // namespace
}  // namespace spw::lab
