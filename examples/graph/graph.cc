// graph: builds an R-MAT graph in memory and runs PageRank, breadth-first search and connected components on it.
//
//   graph [--scale S] [--edge-factor F] [--save FILE] [--seed N] [--sweeps N] [--verify yes|no] [--threads T]
//         [--progress on|off]
//   graph --graph FILE [--load read|map] [--run pagerank|bfs|components|all] ...
//
// 2^S vertices, F * 2^S undirected edges. The graph itself takes 8 F + 8 bytes a vertex; building it takes 16
// F more for a while. --save writes it to a file, which --graph reads into memory, or maps. Prints the times
// of the phases and what the checks said as JSON; before the first of the algorithms, when it began. Exit
// status 1: a check failed.

#include <omp.h>

#include <cstdio>
#include <string>

#include "common/options.h"
#include "common/report.h"
#include "graph/bfs.h"
#include "graph/components.h"
#include "graph/csr.h"
#include "graph/digest.h"
#include "graph/file.h"
#include "graph/pagerank.h"
#include "graph/verify.h"

namespace {

using examples::Graph;
using examples::Json;
using examples::Vertex;

// Of each phase.
struct Times {
  Json wall;
  Json processor;
};

template <class Phase>
auto timed(Times& times, const char* name, Phase phase) {
  const double start = examples::now_s();
  const double processor_start = examples::processor_s();
  auto result = phase();
  times.wall.add(name, examples::now_s() - start);
  times.processor.add(name, examples::processor_s() - processor_start);
  return result;
}

Vertex random_source(const Graph& graph, uint64_t seed) {
  for (uint64_t i = 0;; ++i) {
    const uint64_t v = examples::random_at(seed, i) % graph.vertices;
    if (graph.degree(v) > 0) return static_cast<Vertex>(v);
  }
}

struct Settings {
  explicit Settings(examples::Options& options)
      : scale(static_cast<int>(options.number("scale", 20))),
        edge_factor(options.number("edge-factor", 16)),
        seed(options.number("seed", 1)),
        sweeps(static_cast<int>(options.number("sweeps", 10))),
        verify(options.text("verify", "yes") == "yes"),
        progress_on(options.text("progress", "on") == "on"),
        save(options.text("save", "")),
        file(options.text("graph", "")),
        load(options.text("load", "read")),
        run(options.text("run", "all")) {
    omp_set_num_threads(
        static_cast<int>(options.number("threads", static_cast<uint64_t>(omp_get_max_threads()))));
    options.finish();
    if (scale < 1 || scale > 31) examples::fail("--scale is 1 to 31");
    if (edge_factor < 1) examples::fail("--edge-factor is at least 1");
    if (sweeps < 1) examples::fail("--sweeps is at least 1");
    if (load != "read" && load != "map") examples::fail("--load is read or map");
    if (run != "pagerank" && run != "bfs" && run != "components" && run != "all")
      examples::fail("--run is pagerank, bfs, components or all");
  }

  bool runs(const char* name) const { return run == "all" || run == name; }

  int scale;
  uint64_t edge_factor;
  uint64_t seed;
  int sweeps;
  bool verify;
  bool progress_on;
  std::string save;  // "": nowhere
  std::string file;  // "": the graph is built
  std::string load;
  std::string run;
};

// Prints what was found, checks it, and says whether all is right.
class Report {
 public:
  Report(const Graph& graph, const Settings& settings) : settings_(settings) {
    json_.add("name", "graph").add("vertices", graph.vertices).add("half_edges", graph.half_edges);
    json_.add("graph_bytes", graph.half_edges * sizeof(Vertex) + (graph.vertices + 1) * sizeof(uint64_t));
    json_.add("threads", omp_get_max_threads());
  }

  Json& json() { return json_; }

  template <class Check>
  void check(const char* name, Check passes) {
    if (!settings_.verify) return;
    const examples::Progress progress("verify", 0, settings_.progress_on);
    const double start = examples::now_s();
    const bool passed = passes();
    verify_s_ += examples::now_s() - start;
    checks_.add(name, passed);
    ok_ = ok_ && passed;
  }

  void digest(uint64_t found) { checksum_ = checksum_ * 31 + found; }

  bool finish(Times& times) {
    if (settings_.verify) times.wall.add("verify", verify_s_);
    if (settings_.verify) json_.add("checks", checks_);
    json_.add("seconds", times.wall).add("processor", times.processor);
    json_.add("processor_s", examples::processor_s()).add_hex("checksum", checksum_).add("ok", ok_).print();
    return ok_;
  }

 private:
  const Settings& settings_;
  Json json_;
  Json checks_;
  uint64_t checksum_ = 0;
  double verify_s_ = 0;
  bool ok_ = true;
};

}  // namespace

int main(int argc, char** argv) {
  examples::Options options(argc, argv);
  const Settings settings(options);
  const bool progress_on = settings.progress_on;

  Times times;
  const Graph graph = timed(times, settings.file.empty() ? "build" : "load", [&] {
    if (!settings.file.empty()) return examples::load_graph(settings.file, settings.load == "map");
    return examples::GraphBuilder(settings.scale, settings.edge_factor, settings.seed, progress_on).build();
  });
  if (graph.half_edges == 0) examples::fail("the graph has no edges");
  if (!settings.save.empty()) examples::save_graph(graph, settings.save);

  examples::print_timed_from();
  Report report(graph, settings);
  if (settings.runs("pagerank")) {
    const auto ranks =
        timed(times, "pagerank", [&] { return examples::pagerank(graph, settings.sweeps, progress_on); });
    report.digest(examples::digest_of(ranks));
    report.check("pagerank", [&] { return examples::pagerank_is_valid(graph, ranks); });
  }
  if (settings.runs("bfs")) {
    const Vertex source = random_source(graph, settings.seed);
    const auto search = timed(times, "bfs", [&] { return examples::bfs(graph, source, progress_on); });
    report.json().add("reached", search.reached).add("depth", search.depth);
    report.digest(examples::digest_of(search, graph.vertices));
    report.check("bfs", [&] { return examples::bfs_is_valid(graph, search); });
  }
  if (settings.runs("components")) {
    const auto components =
        timed(times, "components", [&] { return examples::connected_components(graph, progress_on); });
    report.digest(examples::digest_of(components, graph.vertices));
    uint64_t component_count = 0;
    report.check("components",
                 [&] { return examples::components_are_valid(graph, components, &component_count); });
    if (settings.verify) report.json().add("components", component_count);
  }
  return report.finish(times) ? 0 : 1;
}
