// The paper's persistent-array: one section, in which a loop stores to 400 integers in their order, 2500 times.
//
// The array is 25 lines, aligned, each stored to 16 times in a row. A table of eight lines has given up each line when
// its turn comes again, so it flushes one for 16 stores, 0.0625; whoever holds 25 lines flushes each once, at the end.
//
// Inferred: the paper counts 1,000,001 stores. Here the last one says, in a line of its own, how many passes the array
// has seen; then LA and SC flush 26 lines, 0.00003 of the stores (and the paper names 26 as the best size).
// size: integers. rounds: times 2500 passes.
#include "durable/workload.h"

namespace spw::bench {

namespace {

constexpr uint64_t kPasses = 2500;

struct alignas(64) Progress {
  uint64_t passes;
};

}  // namespace

void run_persistent_array(Run& run) {
  auto* array = static_cast<int32_t*>(run.allocate((run.size * sizeof(int32_t) + 63) / 64 * 64));
  auto* progress = run.allocate<Progress>();
  const uint64_t passes = run.rounds * kPasses;
  run.start();
  {
    Section section;
    for (uint64_t pass = 0; pass < passes; ++pass)
      for (uint64_t i = 0; i < run.size; ++i) store(array[i], static_cast<int32_t>(pass + i));
    store(progress->passes, passes);
  }
  run.stop();
  for (uint64_t i = 0; i < run.size; ++i)
    if (array[i] != static_cast<int32_t>(passes - 1 + i)) die("the array has something else in it");
}

}  // namespace spw::bench
