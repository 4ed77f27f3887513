// Connected components by Afforest (Sutton, Ben-Nun, Barak, "Optimizing parallel graph connectivity
// computation via subgraph sampling", IPDPS 2018): link every vertex to its first few neighbours, find the
// component that most vertices are in by then, and look at the remaining neighbours of the others only.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "common/progress.h"
#include "common/random.h"
#include "graph/csr.h"

namespace examples {

// Labels form trees whose roots label themselves, and a label never exceeds its vertex: so no cycle can arise.
class Components {
 public:
  explicit Components(uint64_t vertices) : vertices_(vertices), label_(new std::atomic<Vertex>[vertices]) {
#pragma omp parallel for schedule(static)
    for (uint64_t v = 0; v < vertices; ++v)
      label_[v].store(static_cast<Vertex>(v), std::memory_order_relaxed);
  }

  Vertex label(uint64_t v) const { return label_[v].load(std::memory_order_relaxed); }

  // Joins the trees of two vertices by hanging the higher root below the lower one.
  void link(Vertex a, Vertex b) {
    Vertex x = label(a);
    Vertex y = label(b);
    while (x != y) {
      const Vertex high = std::max(x, y);
      const Vertex low = std::min(x, y);
      Vertex above = label(high);
      if (above == low) return;
      if (above == high && label_[high].compare_exchange_strong(above, low, std::memory_order_relaxed))
        return;
      x = label(label(high));
      y = label(low);
    }
  }

  // Makes every label a root.
  void compress() {
#pragma omp parallel for schedule(dynamic, 4096)
    for (uint64_t v = 0; v < vertices_; ++v) {
      Vertex root = label(v);
      while (root != label(root)) root = label(root);
      label_[v].store(root, std::memory_order_relaxed);
    }
  }

  Vertex most_frequent_in_sample() const {
    constexpr int kSamples = 1024;
    std::unordered_map<Vertex, int> seen;
    for (uint64_t i = 0; i < kSamples; ++i) ++seen[label(random_at(1, i) % vertices_)];
    return std::max_element(seen.begin(), seen.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  }

 private:
  const uint64_t vertices_;
  std::unique_ptr<std::atomic<Vertex>[]> label_;
};

inline Components connected_components(const Graph& graph, bool progress_on) {
  constexpr uint64_t kSampledNeighbours = 2;
  Progress progress("components", (kSampledNeighbours + 1) * graph.vertices, progress_on);
  Components components(graph.vertices);
  for (uint64_t round = 0; round < kSampledNeighbours; ++round) {
#pragma omp parallel for schedule(dynamic, 4096)
    for (uint64_t v = 0; v < graph.vertices; ++v) {
      if (round < graph.degree(v)) components.link(static_cast<Vertex>(v), graph.begin(v)[round]);
      if (v % 4096 == 0) progress.done(4096);
    }
    components.compress();
  }
  const Vertex largest = components.most_frequent_in_sample();
#pragma omp parallel for schedule(dynamic, 4096)
  for (uint64_t v = 0; v < graph.vertices; ++v) {
    if (components.label(v) != largest) {
      const uint64_t skipped = std::min(kSampledNeighbours, graph.degree(v));
      for (const Vertex* u = graph.begin(v) + skipped; u != graph.end(v); ++u) {
        components.link(static_cast<Vertex>(v), *u);
      }
    }
    if (v % 4096 == 0) progress.done(4096);
  }
  components.compress();
  return components;
}

}  // namespace examples
