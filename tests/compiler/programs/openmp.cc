// OpenMP: outlined regions, reductions, atomics, critical sections, tasks, scans over shared and private data.
#include <omp.h>

#include <vector>

#include "check.h"

namespace {

struct Graph {
  std::vector<int> first, to;
};

Graph make_graph(int vertices) {
  Graph g;
  g.first.push_back(0);
  for (int v = 0; v < vertices; ++v) {
    for (uint64_t e = random_u64() % 12; e; --e)
      g.to.push_back(static_cast<int>(random_u64() % static_cast<uint64_t>(vertices)));
    g.first.push_back(static_cast<int>(g.to.size()));
  }
  return g;
}

void ranks() {
  const int n = 3000;
  const Graph g = make_graph(n);
  std::vector<long> now(n, 1000), next(n);
  for (int round = 0; round < 4; ++round) {
#pragma omp parallel for schedule(dynamic, 64)
    for (int v = 0; v < n; ++v) {
      long sum = 0;
      for (int e = g.first[static_cast<size_t>(v)]; e < g.first[static_cast<size_t>(v) + 1]; ++e)
        sum += now[static_cast<size_t>(g.to[static_cast<size_t>(e)])];
      next[static_cast<size_t>(v)] = sum / 3 + 7;
    }
    now.swap(next);
  }
  long total = 0;
#pragma omp parallel for reduction(+ : total)
  for (int v = 0; v < n; ++v) total += now[static_cast<size_t>(v)];
  REPORT("ranks", static_cast<uint64_t>(total));
}

void updates() {
  const int n = 5000;
  long* bins = new long[97]();
  double* weights = new double[97]();
  long in_critical = 0;
#pragma omp parallel for num_threads(3)
  for (int i = 0; i < n; ++i) {
#pragma omp atomic
    bins[i % 97] += i;
#pragma omp atomic
    weights[i * 7 % 97] += 0.5 * i;
#pragma omp critical
    in_critical += bins[0] >= 0;
  }
  uint64_t h = 1;
  for (int i = 0; i < 97; ++i)
    h = mix(h, static_cast<uint64_t>(bins[i]) + static_cast<uint64_t>(weights[i] * 2));
  REPORT("updates", h + static_cast<uint64_t>(in_critical));
}

long fibonacci(int n, long* memory) {
  if (n < 2) return n;
  long a = 0, b = 0;
#pragma omp task shared(a) if (n > 8)
  a = fibonacci(n - 1, memory);
#pragma omp task shared(b) if (n > 8)
  b = fibonacci(n - 2, memory);
#pragma omp taskwait
#pragma omp atomic
  memory[n] += 1;
  return a + b;
}
void tasks() {
  long* memory = new long[64]();
  long result = 0;
#pragma omp parallel num_threads(3)
#pragma omp single
  result = fibonacci(14, memory);
  uint64_t h = static_cast<uint64_t>(result);
  for (int i = 0; i < 64; ++i) h = mix(h, static_cast<uint64_t>(memory[i]));
  REPORT("tasks", h);
}

}  // namespace

int main() {
  ranks();
  updates();
  tasks();
}
