// PageRank by pulling: a fixed number of sweeps of r(v) = (1 - d) / n + d (sum over neighbours u of r(u) /
// degree(u) + lost / n), where `lost` is the rank of vertices without neighbours. The ranks sum to 1 at any time.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "common/progress.h"
#include "graph/csr.h"

namespace examples {

constexpr double kDamping = 0.85;

struct Sweep {
  double mass = 0;    // sum of the new ranks
  double change = 0;  // sum of |new - old|
};

// One sweep: ranks from `ranks` into `ranks`, by way of `shares` (each vertex's rank over its degree).
inline Sweep pagerank_sweep(const Graph& graph, std::vector<float>& ranks, std::vector<float>& shares,
                            Progress& progress) {
  double lost = 0;
#pragma omp parallel for schedule(static) reduction(+ : lost)
  for (uint64_t v = 0; v < graph.vertices; ++v) {
    const uint64_t degree = graph.degree(v);
    if (degree == 0) lost += ranks[v];
    shares[v] = degree == 0 ? 0 : ranks[v] / static_cast<float>(degree);
  }
  const double n = static_cast<double>(graph.vertices);
  const double base = (1 - kDamping) / n + kDamping * lost / n;
  double mass = 0;
  double change = 0;
#pragma omp parallel for schedule(dynamic, 4096) reduction(+ : mass, change)
  for (uint64_t v = 0; v < graph.vertices; ++v) {
    double sum = 0;
    for (const Vertex* u = graph.begin(v); u != graph.end(v); ++u) sum += shares[*u];
    const double rank = base + kDamping * sum;
    mass += rank;
    change += std::abs(rank - ranks[v]);
    ranks[v] = static_cast<float>(rank);
    if (v % 4096 == 0) progress.done(4096);
  }
  return {mass, change};
}

struct PageRank {
  std::vector<float> ranks;
  Sweep last;
};

inline PageRank pagerank(const Graph& graph, int sweeps, bool progress_on) {
  Progress progress("pagerank", graph.vertices * static_cast<uint64_t>(sweeps), progress_on);
  PageRank result;
  result.ranks.assign(graph.vertices, 1.0f / static_cast<float>(graph.vertices));
  std::vector<float> shares(graph.vertices);
  for (int i = 0; i < sweeps; ++i) result.last = pagerank_sweep(graph, result.ranks, shares, progress);
  return result;
}

}  // namespace examples
