// graph: builds an R-MAT graph in memory and runs PageRank, breadth-first search and connected components on
// it.
//
//   graph [--scale S] [--edge-factor F] [--seed N] [--sweeps N] [--verify yes|no] [--threads T] [--progress
//   on|off]
//
// 2^S vertices, F * 2^S undirected edges. The graph itself takes 8 F + 8 bytes a vertex; building it takes 16
// F more for a while. Prints the times of the phases and what the checks said as JSON. Exit status 1: a check
// failed.

#include <omp.h>

#include <cstdio>

#include "common/options.h"
#include "common/report.h"
#include "graph/bfs.h"
#include "graph/components.h"
#include "graph/csr.h"
#include "graph/pagerank.h"
#include "graph/verify.h"

namespace {

using examples::Graph;
using examples::Json;
using examples::Vertex;

template <class Phase>
auto timed(Json& seconds, const char* name, Phase phase) {
  const double start = examples::now_s();
  auto result = phase();
  seconds.add(name, examples::now_s() - start);
  return result;
}

Vertex random_source(const Graph& graph, uint64_t seed) {
  for (uint64_t i = 0;; ++i) {
    const uint64_t v = examples::random_at(seed, i) % graph.vertices;
    if (graph.degree(v) > 0) return static_cast<Vertex>(v);
  }
}

}  // namespace

int main(int argc, char** argv) {
  examples::Options options(argc, argv);
  const int scale = static_cast<int>(options.number("scale", 20));
  const uint64_t edge_factor = options.number("edge-factor", 16);
  const uint64_t seed = options.number("seed", 1);
  const int sweeps = static_cast<int>(options.number("sweeps", 10));
  const bool verify = options.text("verify", "yes") == "yes";
  const bool progress_on = options.text("progress", "on") == "on";
  omp_set_num_threads(
      static_cast<int>(options.number("threads", static_cast<uint64_t>(omp_get_max_threads()))));
  options.finish();
  if (scale < 1 || scale > 31) examples::fail("--scale is 1 to 31");
  if (edge_factor < 1) examples::fail("--edge-factor is at least 1");
  if (sweeps < 1) examples::fail("--sweeps is at least 1");

  Json seconds;
  const Graph graph = timed(seconds, "build", [&] {
    return examples::GraphBuilder(scale, edge_factor, seed, progress_on).build();
  });
  if (graph.half_edges == 0) examples::fail("the graph has no edges");
  const auto ranks =
      timed(seconds, "pagerank", [&] { return examples::pagerank(graph, sweeps, progress_on); });
  const auto search =
      timed(seconds, "bfs", [&] { return examples::bfs(graph, random_source(graph, seed), progress_on); });
  const auto components =
      timed(seconds, "components", [&] { return examples::connected_components(graph, progress_on); });

  Json report;
  report.add("name", "graph").add("vertices", graph.vertices).add("half_edges", graph.half_edges);
  report.add("graph_bytes", graph.half_edges * sizeof(Vertex) + (graph.vertices + 1) * sizeof(uint64_t));
  report.add("threads", omp_get_max_threads()).add("reached", search.reached).add("depth", search.depth);
  bool ok = true;
  if (verify) {
    examples::Progress progress("verify", 0, progress_on);
    uint64_t component_count = 0;
    Json checks;
    const auto check = [&](const char* name, bool passed) {
      checks.add(name, passed);
      ok = ok && passed;
    };
    timed(seconds, "verify", [&] {
      check("pagerank", examples::pagerank_is_valid(graph, ranks));
      check("bfs", examples::bfs_is_valid(graph, search));
      check("components", examples::components_are_valid(graph, components, &component_count));
      return 0;
    });
    report.add("components", component_count).add("checks", checks);
  }
  report.add("seconds", seconds).add("processor_s", examples::processor_s()).add("ok", ok).print();
  return ok ? 0 : 1;
}
