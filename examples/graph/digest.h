// What the algorithms found, each as one number: the same however threads took turns.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/random.h"
#include "graph/bfs.h"
#include "graph/components.h"
#include "graph/pagerank.h"

namespace examples {

// Sums of ranks differ in their last bits with the order of adding up, so few digits count.
inline uint64_t digest_of(const PageRank& found) {
  constexpr double kDigits = 1e5;
  double weighted = 0;
  for (size_t v = 0; v < found.ranks.size(); ++v) weighted += found.ranks[v] * static_cast<double>(v % 1021);
  return static_cast<uint64_t>(std::llround(weighted * kDigits));
}

// Which neighbour became a vertex's parent is chance; its level is not.
inline uint64_t digest_of(const Bfs& found, uint64_t vertices) {
  uint64_t sum = 0;
  for (uint64_t v = 0; v < vertices; ++v)
    sum += random_at(found.levels[v].load(std::memory_order_relaxed), v);
  return sum;
}

inline uint64_t digest_of(const Components& found, uint64_t vertices) {
  uint64_t sum = 0;
  for (uint64_t v = 0; v < vertices; ++v) sum += random_at(found.label(v), v);
  return sum;
}

}  // namespace examples
