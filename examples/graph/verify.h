// Checks of the three results by other means than those that made them.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "graph/bfs.h"
#include "graph/components.h"
#include "graph/csr.h"
#include "graph/pagerank.h"

namespace examples {

// The mass is 1, and one sweep more moves the ranks no more than a contraction by the damping factor allows.
inline bool pagerank_is_valid(const Graph& graph, const PageRank& result) {
  std::vector<float> ranks = result.ranks;
  std::vector<float> shares(graph.vertices);
  Progress silent("", 0, false);
  const Sweep next = pagerank_sweep(graph, ranks, shares, silent);
  constexpr double kRounding = 1e-4;  // of sums of floats
  return std::abs(result.last.mass - 1) < kRounding && std::abs(next.mass - 1) < kRounding &&
         next.change <= kDamping * result.last.change + kRounding;
}

// Every reached vertex but the source has a neighbour as its parent, one level up; no edge spans more than
// one level or joins reached and unreached vertices; as many were reached as the search said.
inline bool bfs_is_valid(const Graph& graph, const Bfs& result) {
  uint64_t wrong = 0;
  uint64_t reached = 0;
#pragma omp parallel for schedule(dynamic, 4096) reduction(+ : wrong, reached)
  for (uint64_t v = 0; v < graph.vertices; ++v) {
    const int level = result.levels[v].load(std::memory_order_relaxed);
    const Vertex parent = result.parents[v].load(std::memory_order_relaxed);
    const bool is_reached = level != Bfs::kUnreached;
    bool has_parent = v == result.source ? parent == v && level == 0 : !is_reached && parent == kNoVertex;
    for (const Vertex* u = graph.begin(v); u != graph.end(v); ++u) {
      const int other = result.levels[*u].load(std::memory_order_relaxed);
      if ((other != Bfs::kUnreached) != is_reached || std::abs(other - level) > 1) ++wrong;
      if (v != result.source && *u == parent && other + 1 == level) has_parent = true;
    }
    if (!has_parent) ++wrong;
    if (is_reached) ++reached;
  }
  return wrong == 0 && reached == result.reached;
}

// The labels divide the vertices exactly as a sequential union-find over all edges does. Fills in how many
// components there are.
inline bool components_are_valid(const Graph& graph, const Components& result, uint64_t* component_count) {
  std::vector<Vertex> parent(graph.vertices);
  std::iota(parent.begin(), parent.end(), Vertex{0});
  const auto root_of = [&parent](Vertex v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
  };
  for (uint64_t v = 0; v < graph.vertices; ++v) {
    for (const Vertex* u = graph.begin(v); u != graph.end(v); ++u) {
      if (*u > v) continue;
      const Vertex a = root_of(static_cast<Vertex>(v));
      const Vertex b = root_of(*u);
      if (a != b) parent[std::max(a, b)] = std::min(a, b);
    }
  }
  // A root is the lowest vertex of its set here, and the label of its component there.
  uint64_t wrong = 0;
  *component_count = 0;
  for (uint64_t v = 0; v < graph.vertices; ++v) {
    const Vertex root = root_of(static_cast<Vertex>(v));
    if (result.label(v) != root) ++wrong;
    if (root == v) ++*component_count;
  }
  return wrong == 0;
}

}  // namespace examples
