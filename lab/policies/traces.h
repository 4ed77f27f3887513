// Synthetic traces of block accesses, the shapes that caches meet: each the same on every machine for the same seed.
//
// Threads: none. Limits: data < 2^32.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spw::lab {

struct NamedTrace {
  std::string name;
  std::vector<uint64_t> blocks;
};

// Independent accesses, the i-th most popular block with a probability
// like 1 / i^skew; popularity has nothing to do with place.
NamedTrace zipf(uint64_t accesses, uint32_t data, double skew, uint64_t seed);
// All places equally likely.
NamedTrace uniform(uint64_t accesses, uint32_t data, uint64_t seed);
// From the first block to the last, again and again.
NamedTrace loop(uint64_t accesses, uint32_t data);
// Zipf, interrupted by scans of blocks that are used this once: a tenth of the accesses each time.
NamedTrace zipf_and_scans(uint64_t accesses, uint32_t data, uint64_t seed);
// A small loop in a large one, beside Zipf: three bends in the curve.
NamedTrace mixed(uint64_t accesses, uint32_t data, uint64_t seed);
// Lookups of a B+-tree by YCSB's user-profile workload (Zipf 0.99
// over items, scrambled): an inner page and a leaf each.
NamedTrace ycsb(uint64_t accesses, uint32_t data, uint64_t seed);
// Zipf over blocks that change every tenth of the trace.
NamedTrace shifting(uint64_t accesses, uint32_t data, uint64_t seed);
// Graph-like: a scan of edges, with a Zipf access to a vertex for each few of them.
NamedTrace scan_and_scatter(uint64_t accesses, uint32_t data, uint64_t seed);

// All of the above.
std::vector<NamedTrace> all_traces(uint64_t accesses, uint32_t data);

// The same, with each access repeated between one and `repeats_max` times, in a row or nearly so: as a program's loads
// and stores within a block come.
NamedTrace correlated(const NamedTrace& trace, unsigned repeats_max, uint64_t seed);

}  // namespace spw::lab
