// Breadth-first search, one level after the other: every vertex of the present level claims its unclaimed neighbours.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "common/progress.h"
#include "graph/csr.h"

namespace examples {

struct Bfs {
  static constexpr uint8_t kUnreached = 255;

  Vertex source = 0;
  std::unique_ptr<std::atomic<Vertex>[]> parents;  // kNoVertex: not reached; the source is its own parent
  std::unique_ptr<std::atomic<uint8_t>[]> levels;  // distance from the source
  uint64_t reached = 0;
  int depth = 0;
};

// The graph's levels must number fewer than Bfs::kUnreached, as those of R-MAT graphs do.
inline Bfs bfs(const Graph& graph, Vertex source, bool progress_on) {
  Progress progress("bfs", graph.vertices, progress_on);
  Bfs result;
  result.source = source;
  result.parents.reset(new std::atomic<Vertex>[graph.vertices]);
  result.levels.reset(new std::atomic<uint8_t>[graph.vertices]);
  auto* const parents = result.parents.get();
  auto* const levels = result.levels.get();
#pragma omp parallel for schedule(static)
  for (uint64_t v = 0; v < graph.vertices; ++v) {
    parents[v].store(kNoVertex, std::memory_order_relaxed);
    levels[v].store(Bfs::kUnreached, std::memory_order_relaxed);
  }
  parents[source].store(source, std::memory_order_relaxed);
  levels[source].store(0, std::memory_order_relaxed);
  result.reached = 1;
  uint64_t found = 1;
  for (int level = 0; found > 0 && level < Bfs::kUnreached - 1; ++level) {
    found = 0;
#pragma omp parallel for schedule(dynamic, 4096) reduction(+ : found)
    for (uint64_t v = 0; v < graph.vertices; ++v) {
      if (levels[v].load(std::memory_order_relaxed) != level) continue;
      for (const Vertex* u = graph.begin(v); u != graph.end(v); ++u) {
        Vertex unclaimed = kNoVertex;
        if (parents[*u].load(std::memory_order_relaxed) == kNoVertex &&
            parents[*u].compare_exchange_strong(unclaimed, static_cast<Vertex>(v),
                                                std::memory_order_relaxed)) {
          levels[*u].store(static_cast<uint8_t>(level + 1), std::memory_order_relaxed);
          ++found;
        }
      }
    }
    result.reached += found;
    result.depth = level;
    progress.done(found);
  }
  return result;
}

}  // namespace examples
