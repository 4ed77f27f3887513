// A hash join of two tables as one would write it for memory: both sides are partitioned by their keys' hash, then
// each partition of one side becomes a small hash table that the same partition of the other probes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/options.h"
#include "common/random.h"
#include "micro/harness.h"
#include "micro/radix.h"

namespace examples {

struct Tuple {
  uint64_t key;
  uint64_t value;
};

// One partition's hash table: open addressing, at most half full. Keys are unique and not 0.
class PartitionTable {
 public:
  explicit PartitionTable(uint64_t tuples_max) {
    uint64_t slots = 16;
    while (slots < 2 * tuples_max) slots *= 2;
    slots_.resize(slots);
  }

  void build(const Tuple* begin, const Tuple* end) {
    uint64_t slots = 16;
    while (slots < 2 * static_cast<uint64_t>(end - begin)) slots *= 2;
    mask_ = slots - 1;
    std::fill_n(slots_.begin(), slots, Tuple{0, 0});
    for (const Tuple* t = begin; t != end; ++t) {
      uint64_t place = t->key & mask_;
      while (slots_[place].key != 0) place = (place + 1) & mask_;
      slots_[place] = *t;
    }
  }

  // 0 where the key is not there.
  uint64_t value_of(uint64_t key) const {
    uint64_t place = key & mask_;
    while (slots_[place].key != key && slots_[place].key != 0) place = (place + 1) & mask_;
    return slots_[place].value;
  }

 private:
  uint64_t mask_ = 0;
  std::vector<Tuple> slots_;
};

// Keys of the build side are mix(1) .. mix(n), each once; three quarters of the probe side's are among them. The two
// sides and their partitioned copies share the bytes.
inline Measured hash_join(const Settings& settings) {
  constexpr uint64_t kPartitionTuples = 1 << 14;  // its hash table fits a second-level cache
  const uint64_t count = settings.bytes / 4 / sizeof(Tuple);
  int bits = 4;
  while (bits < 10 && count >> bits > kPartitionTuples) ++bits;
  const uint64_t partitions = uint64_t{1} << bits;
  const std::unique_ptr<Tuple[]> build(new Tuple[count]);
  const std::unique_ptr<Tuple[]> probe(new Tuple[count]);
  const std::unique_ptr<Tuple[]> build_parts(new Tuple[count]);
  const std::unique_ptr<Tuple[]> probe_parts(new Tuple[count]);
#pragma omp parallel for schedule(static) num_threads(settings.threads)
  for (uint64_t i = 0; i < count; ++i) {
    build[i] = Tuple{mix(i + 1), i + 1};
    probe[i] = Tuple{mix(random_at(2, i) % (count + count / 3) + 1), i};
  }
  Scatter build_scatter(partitions, settings.threads);
  Scatter probe_scatter(partitions, settings.threads);
  const auto partition_of = [bits](const Tuple& t) { return t.key >> (64 - bits); };
  return measure(settings, 2 * count, [&](int thread) {
    build_scatter.run(build.get(), build_parts.get(), count, thread, partition_of);
    probe_scatter.run(probe.get(), probe_parts.get(), count, thread, partition_of);
    uint64_t largest = 0;
    for (uint64_t p = 0; p < partitions; ++p)
      largest = std::max(largest, build_scatter.begin(p + 1) - build_scatter.begin(p));
    PartitionTable table(largest);
    uint64_t sum = 0;
#pragma omp for schedule(dynamic, 1)
    for (uint64_t p = 0; p < partitions; ++p) {
      table.build(build_parts.get() + build_scatter.begin(p), build_parts.get() + build_scatter.begin(p + 1));
      const Tuple* const end = probe_parts.get() + probe_scatter.begin(p + 1);
      for (const Tuple* t = probe_parts.get() + probe_scatter.begin(p); t != end; ++t)
        sum += table.value_of(t->key) * t->value;
    }
    return sum;
  });
}

}  // namespace examples
