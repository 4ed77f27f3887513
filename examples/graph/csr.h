// An undirected graph in compressed sparse rows: every edge stands in the rows of both its ends, parallel
// edges stay, loops go.
//
//   row of v: neighbours[offsets[v]] .. neighbours[offsets[v + 1] - 1], in no particular order
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/progress.h"
#include "graph/rmat.h"

namespace examples {

// Its arrays belong to `storage`: ordinary ones, or a file mapped into memory.
struct Graph {
  uint64_t vertices = 0;
  uint64_t half_edges = 0;
  uint64_t* offsets = nullptr;
  Vertex* neighbours = nullptr;
  std::vector<std::shared_ptr<void>> storage;

  template <class Element>
  Element* allocate(uint64_t count) {
    const std::shared_ptr<Element[]> array(new Element[count]);
    storage.push_back(std::shared_ptr<void>(array, array.get()));
    return array.get();
  }

  uint64_t degree(uint64_t v) const { return offsets[v + 1] - offsets[v]; }
  const Vertex* begin(uint64_t v) const { return neighbours + offsets[v]; }
  const Vertex* end(uint64_t v) const { return neighbours + offsets[v + 1]; }
};

// Builds in two passes over the generator and one over the half edges. The half edges are first partitioned
// by ranges of their first vertex, so that the last pass fills one short stretch of rows at a time instead of
// jumping all over.
class GraphBuilder {
 public:
  GraphBuilder(int scale, uint64_t edge_factor, uint64_t seed, bool progress_on)
      : rmat_(scale, seed),
        edges_(edge_factor << scale),
        range_shift_(std::max(kRangeShiftMin, scale - kRangeBitsMax)),
        ranges_((((uint64_t{1} << scale) - 1) >> range_shift_) + 1),
        progress_on_(progress_on) {
    graph_.vertices = uint64_t{1} << scale;
  }

  Graph build() {
    count_degrees();
    partition();
    fill_rows();
    return std::move(graph_);
  }

 private:
  // At most 256 ranges, so that their write positions stay in nearby memory, of 16384 vertices at least.
  static constexpr int kRangeBitsMax = 8;
  static constexpr int kRangeShiftMin = 14;
  static constexpr uint64_t kPieceEdges = 1 << 16;

  // Calls visit(thread, edge) for all edges but loops, the same ones by the same thread every time.
  template <class Visit>
  void for_each_edge(const char* phase, Visit visit) const {
    Progress progress(phase, edges_, progress_on_);
    const uint64_t pieces = (edges_ + kPieceEdges - 1) / kPieceEdges;
#pragma omp parallel for schedule(static)
    for (uint64_t piece = 0; piece < pieces; ++piece) {
      const uint64_t end = std::min(edges_, (piece + 1) * kPieceEdges);
      for (uint64_t number = piece * kPieceEdges; number < end; ++number) {
        const Edge edge = rmat_.edge(number);
        if (edge.from != edge.to) visit(omp_get_thread_num(), edge);
      }
      progress.done(kPieceEdges);
    }
  }

  void count_degrees() {
    const uint64_t vertices = graph_.vertices;
    const auto threads = static_cast<size_t>(omp_get_max_threads());
    const auto degrees = std::make_unique<std::atomic<uint32_t>[]>(vertices);
    next_in_range_.assign(threads, std::vector<uint64_t>(ranges_));
    for_each_edge("degrees", [&](int thread, Edge edge) {
      for (const Vertex v : {edge.from, edge.to}) {
        degrees[v].fetch_add(1, std::memory_order_relaxed);
        ++next_in_range_[static_cast<size_t>(thread)][v >> range_shift_];
      }
    });
    graph_.offsets = graph_.allocate<uint64_t>(vertices + 1);
    uint64_t next = 0;
    for (uint64_t v = 0; v < vertices; ++v) {
      graph_.offsets[v] = next;
      next += degrees[v].load(std::memory_order_relaxed);
    }
    graph_.offsets[vertices] = graph_.half_edges = next;
    uint64_t place = 0;
    for (uint64_t range = 0; range < ranges_; ++range) {
      for (auto& of_thread : next_in_range_) {
        const uint64_t size = std::exchange(of_thread[range], place);
        place += size;
      }
    }
  }

  void partition() {
    by_range_.reset(new Edge[graph_.half_edges]);
    for_each_edge("partition", [&](int thread, Edge edge) {
      uint64_t* const next = next_in_range_[static_cast<size_t>(thread)].data();
      by_range_[next[edge.from >> range_shift_]++] = edge;
      by_range_[next[edge.to >> range_shift_]++] = {edge.to, edge.from};
    });
  }

  // A range's half edges and its rows are the same stretch [offsets[first vertex], offsets[last vertex + 1]).
  void fill_rows() {
    Progress progress("rows", graph_.half_edges, progress_on_);
    graph_.neighbours = graph_.allocate<Vertex>(graph_.half_edges);
#pragma omp parallel for schedule(dynamic, 1)
    for (uint64_t range = 0; range < ranges_; ++range) {
      const uint64_t first = range << range_shift_;
      const uint64_t last = std::min(graph_.vertices, (range + 1) << range_shift_);
      std::vector<uint64_t> next(graph_.offsets + first, graph_.offsets + last);
      for (uint64_t i = graph_.offsets[first]; i < graph_.offsets[last]; ++i) {
        const Edge edge = by_range_[i];
        graph_.neighbours[next[edge.from - first]++] = edge.to;
      }
      progress.done(graph_.offsets[last] - graph_.offsets[first]);
    }
    by_range_.reset();
  }

  const Rmat rmat_;
  const uint64_t edges_;
  const int range_shift_;
  const uint64_t ranges_;
  const bool progress_on_;
  Graph graph_;
  std::vector<std::vector<uint64_t>> next_in_range_;  // by thread, then by range
  std::unique_ptr<Edge[]> by_range_;
};

}  // namespace examples
