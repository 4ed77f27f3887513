// Boost.Graph: graphs of vectors and of nodes, all of it managed.
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/connected_components.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/kruskal_min_spanning_tree.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/graph/topological_sort.hpp>
#include <vector>

#include "parts.h"
#include "print.h"

namespace {

using Weight = boost::property<boost::edge_weight_t, uint64_t>;

template <class Values>
void print_values(const char* name, const Values& values) {
  uint64_t sum = 0;
  for (const auto value : values) sum = mix(sum, static_cast<uint64_t>(value));
  print_sum(name, sum);
}

template <class Graph>
Graph random_graph(size_t vertices, size_t edges, bool acyclic = false) {
  Graph graph(vertices);
  uint64_t seed = 7;
  for (size_t i = 0; i < edges; ++i) {
    size_t from = next_random(&seed) % vertices, to = next_random(&seed) % vertices;
    if (acyclic && from == to) continue;
    if (acyclic && from > to) std::swap(from, to);
    boost::add_edge(boost::vertex(from, graph), boost::vertex(to, graph), Weight(next_random(&seed) % 1000),
                    graph);
  }
  return graph;
}

template <class Graph>
void print_components(const Graph& graph) {
  std::vector<int> component(num_vertices(graph));
  printf("%d components\n", boost::connected_components(graph, component.data()));
  print_values("component", component);
}

int vectors(long) {
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Weight>;
  constexpr size_t kVertices = 24'000;
  const Graph graph = random_graph<Graph>(kVertices, 120'000);
  std::vector<uint64_t> distances(kVertices);
  std::vector<size_t> before(kVertices);
  boost::dijkstra_shortest_paths(graph, 0,
                                 boost::distance_map(distances.data()).predecessor_map(before.data()));
  print_values("distances", distances);
  print_values("before", before);
  std::vector<int> component(kVertices);
  const int components = boost::strong_components(
      graph, boost::make_iterator_property_map(component.begin(), get(boost::vertex_index, graph)));
  printf("%d strong components\n", components);
  print_values("component", component);
  std::vector<uint64_t> levels(kVertices);
  boost::breadth_first_search(
      graph, 0,
      boost::visitor(boost::make_bfs_visitor(boost::record_distances(levels.data(), boost::on_tree_edge()))));
  print_values("levels", levels);
  return 0;
}

// Each vertex has a set of its edges, and each edge is in a list of all.
int nodes(long) {
  using Graph =
      boost::adjacency_list<boost::setS, boost::vecS, boost::undirectedS, boost::no_property, Weight>;
  constexpr size_t kVertices = 12'000;
  Graph graph = random_graph<Graph>(kVertices, 46'000);
  print_components(graph);
  std::vector<boost::graph_traits<Graph>::edge_descriptor> tree;
  boost::kruskal_minimum_spanning_tree(graph, std::back_inserter(tree));
  uint64_t sum = 0;
  for (const auto& edge : tree)
    sum = mix(mix(sum, source(edge, graph) + target(edge, graph)), get(boost::edge_weight, graph, edge));
  print_sum("tree", sum);
  for (size_t v = 0; v < kVertices; v += 3) boost::clear_vertex(v, graph);
  printf("%zu edges left\n", static_cast<size_t>(num_edges(graph)));
  print_components(graph);
  return 0;
}

int order(long) {
  using Graph =
      boost::adjacency_list<boost::listS, boost::vecS, boost::bidirectionalS, boost::no_property, Weight>;
  constexpr size_t kVertices = 20'000;
  const Graph graph = random_graph<Graph>(kVertices, 120'000, true);
  std::vector<size_t> sorted;
  boost::topological_sort(graph, std::back_inserter(sorted));
  print_values("order", sorted);
  uint64_t sum = 0;
  for (size_t v = 0; v < kVertices; ++v)
    for (auto [edge, end] = in_edges(v, graph); edge != end; ++edge) sum = mix(sum, source(*edge, graph) + v);
  print_sum("in edges", sum);
  return 0;
}

constexpr Part kParts[] = {{"vectors", vectors}, {"nodes", nodes}, {"order", order}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
