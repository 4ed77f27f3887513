#include "lab/policies/traces.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"

namespace spw::lab {

namespace {

// Ranks by Zipf's law, from 0.
class Zipf {
 public:
  Zipf(uint32_t data, double skew) : below_(data) {
    double sum = 0;
    for (uint32_t i = 0; i < data; ++i) below_[i] = sum += std::pow(i + 1, -skew);
  }
  uint32_t next(Rng& rng) const {
    constexpr double kUnit = 0x1p-53;
    const double place = static_cast<double>(rng.next() >> 11) * kUnit * below_.back();
    return static_cast<uint32_t>(std::upper_bound(below_.begin(), below_.end() - 1, place) - below_.begin());
  }

 private:
  std::vector<double> below_;  // [i]: the sum of the weights of ranks 0 to i
};

// A bijection of [0, data): what is popular lies anywhere.
class Scrambled {
 public:
  Scrambled(uint32_t data, uint64_t seed) : places_(data) {
    Rng rng(seed);
    for (uint32_t i = 0; i < data; ++i) places_[i] = i;
    for (uint32_t i = data; i > 1; --i) std::swap(places_[i - 1], places_[rng.below(i)]);
  }
  uint32_t operator[](uint32_t rank) const { return places_[rank]; }

 private:
  std::vector<uint32_t> places_;
};

template <class Next>
NamedTrace made(std::string name, uint64_t accesses, Next next) {
  NamedTrace trace{std::move(name), {}};
  trace.blocks.reserve(accesses);
  while (trace.blocks.size() < accesses) trace.blocks.push_back(next(trace.blocks.size()));
  return trace;
}

constexpr double kYcsbSkew = 0.99;

}  // namespace

NamedTrace zipf(uint64_t accesses, uint32_t data, double skew, uint64_t seed) {
  Rng rng(seed);
  const Zipf ranks(data, skew);
  const Scrambled places(data, seed);
  return made("zipf", accesses, [&](uint64_t) { return places[ranks.next(rng)]; });
}

NamedTrace uniform(uint64_t accesses, uint32_t data, uint64_t seed) {
  Rng rng(seed);
  return made("uniform", accesses, [&](uint64_t) { return rng.below(data); });
}

NamedTrace loop(uint64_t accesses, uint32_t data) {
  return made("loop", accesses, [&](uint64_t i) { return i % data; });
}

NamedTrace zipf_and_scans(uint64_t accesses, uint32_t data, uint64_t seed) {
  Rng rng(seed);
  const Zipf ranks(data, 0.9);
  const Scrambled places(data, seed);
  const uint64_t piece = std::max<uint64_t>(accesses / 10, 1);
  uint64_t scanned = data;
  return made("zipf and scans", accesses, [&](uint64_t i) -> uint64_t {
    return i / piece % 2 == 1 ? scanned++ : places[ranks.next(rng)];
  });
}

NamedTrace mixed(uint64_t accesses, uint32_t data, uint64_t seed) {
  Rng rng(seed);
  const uint32_t small = std::max(data / 20, 1u), large = std::max(data / 2, 1u);
  const Zipf ranks(data, 0.8);
  const Scrambled places(data, seed);
  uint64_t in_small = 0, in_large = 0;
  return made("mixed", accesses, [&](uint64_t) -> uint64_t {
    switch (rng.below(3)) {
      case 0:
        return uint64_t{data} + in_small++ % small;
      case 1:
        return uint64_t{data} + small + in_large++ % large;
      default:
        return places[ranks.next(rng)];
    }
  });
}

NamedTrace ycsb(uint64_t accesses, uint32_t data, uint64_t seed) {
  constexpr uint32_t kItemsALeaf = 16, kLeavesAnInner = 128;
  Rng rng(seed);
  const uint32_t items = data * kItemsALeaf;
  const Zipf ranks(items, kYcsbSkew);
  const Scrambled places(items, seed);
  uint64_t leaf = 0;
  return made("ycsb", accesses, [&](uint64_t i) -> uint64_t {
    if (i % 2 == 1) return leaf;
    leaf = places[ranks.next(rng)] / kItemsALeaf;
    return uint64_t{data} + leaf / kLeavesAnInner;
  });
}

NamedTrace shifting(uint64_t accesses, uint32_t data, uint64_t seed) {
  Rng rng(seed);
  const Zipf ranks(data, 0.9);
  const Scrambled places(data, seed);
  const uint64_t piece = std::max<uint64_t>(accesses / 10, 1);
  return made("shifting", accesses, [&](uint64_t i) -> uint64_t {
    return places[(ranks.next(rng) + i / piece * (data / 7)) % data];
  });
}

NamedTrace scan_and_scatter(uint64_t accesses, uint32_t data, uint64_t seed) {
  constexpr uint64_t kEdgesABlock = 4;
  Rng rng(seed);
  const uint32_t vertices = std::max(data / 4, 1u);
  const Zipf ranks(vertices, 0.7);
  const Scrambled places(vertices, seed);
  const uint32_t edges = data - vertices;
  return made("scan and scatter", accesses, [&](uint64_t i) -> uint64_t {
    if (i % (kEdgesABlock + 1) == 0) return vertices + i / (kEdgesABlock + 1) % edges;
    return places[ranks.next(rng)];
  });
}

std::vector<NamedTrace> all_traces(uint64_t accesses, uint32_t data) {
  return {zipf(accesses, data, 0.99, 1),     uniform(accesses, data, 2),         loop(accesses, data / 2),
          zipf_and_scans(accesses, data, 3), mixed(accesses, data, 4),           ycsb(accesses, data, 5),
          shifting(accesses, data, 6),       scan_and_scatter(accesses, data, 7)};
}

NamedTrace correlated(const NamedTrace& trace, unsigned repeats_max, uint64_t seed) {
  Rng rng(seed);
  NamedTrace repeated{trace.name + ", correlated", {}};
  uint64_t before = trace.blocks.empty() ? 0 : trace.blocks[0];
  for (const uint64_t block : trace.blocks) {
    for (uint64_t left = 1 + rng.below(repeats_max); left > 0; --left) {
      repeated.blocks.push_back(block);
      // Now and then the walk before this one has a last access still to come.
      if (rng.below(4) == 0) repeated.blocks.push_back(before);
    }
    before = block;
  }
  return repeated;
}

}  // namespace spw::lab
