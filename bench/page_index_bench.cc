// The page index by itself: rates of lookups, insertions and removals with one thread and with two.
//
// items_per_second is of all threads together, so the ratio of two lines that differ in `threads`
// says how well it scales. The work of a thread is the same with one and with two. On a machine
// that has other things to do compare items_per_cpu_second: the sum over threads of items by the
// processor time of the thread, which waiting for caches counts in and waiting for a processor does
// not; or best_items_per_second, of the round that was disturbed least. Lines named control_ have
// an index for each thread, which share nothing at all: what is lost there is lost to the machine.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "lab/page_index/scalecache_index.h"

namespace spw::lab {
namespace {

using files::PageNode, files::PageNodes, files::UseSlots;
using Insertion = ScaleCacheIndex::Insertion;

constexpr uint64_t kEntries = 1'000'000;
constexpr uint64_t kEntriesNear = 50'000;  // in a core's own caches
constexpr uint64_t kLast = 15'000'000;     // past all that is inserted

struct Setup {
  UseSlots uses{std::move(*UseSlots::map_memory())};
  PageNodes pool{uses};
  ScaleCacheIndex index{pool};

  void fill(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) SPW_CHECK(index.insert(i, i + 1) == Insertion::kInserted);
  }
};

double thread_cpu_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Runs rounds of `work(thread)` in threads that begin together, and sums up.
class Rounds {
 public:
  Rounds(benchmark::State& state, uint64_t items_each)
      : state_(state), threads_(static_cast<uint64_t>(state.range(0))), items_each_(items_each) {}

  template <class Work>
  void run(Work work) {
    using Clock = std::chrono::steady_clock;
    std::atomic<uint64_t> ready{0};
    std::vector<Clock::time_point> begun(threads_);
    std::vector<Clock::time_point> ended(threads_);
    std::vector<double> cpu_seconds(threads_);
    std::vector<std::thread> running;
    for (uint64_t t = 0; t < threads_; ++t)
      running.emplace_back([&, t] {
        for (ready.fetch_add(1); ready < threads_;) {
        }
        begun[t] = Clock::now();
        const double cpu = thread_cpu_seconds();
        work(t);
        cpu_seconds[t] = thread_cpu_seconds() - cpu;
        ended[t] = Clock::now();
      });
    for (std::thread& thread : running) thread.join();
    const std::chrono::duration<double> took =
        *std::max_element(ended.begin(), ended.end()) - *std::min_element(begun.begin(), begun.end());
    state_.SetIterationTime(took.count());
    best_ = std::max(best_, static_cast<double>(threads_ * items_each_) / took.count());
    for (double seconds : cpu_seconds) rate_by_cpu_ += static_cast<double>(items_each_) / seconds;
  }
  void report(const ScaleCacheIndex& index) {
    state_.SetItemsProcessed(static_cast<int64_t>(threads_ * items_each_) * state_.iterations());
    state_.counters["items_per_cpu_second"] = rate_by_cpu_ / static_cast<double>(state_.iterations());
    state_.counters["best_items_per_second"] = best_;
    state_.counters["node_bytes"] = sizeof(PageNode);
    state_.counters["index_bytes"] = static_cast<double>(index.memory_bytes());
  }

 private:
  benchmark::State& state_;
  uint64_t threads_;
  uint64_t items_each_;
  double rate_by_cpu_ = 0;
  double best_ = 0;
};

void one_and_two_threads(benchmark::internal::Benchmark* run) {
  run->ArgName("threads")->Arg(1)->Arg(2)->UseManualTime()->Unit(benchmark::kMillisecond);
}

// Random hits. `setups`: one for all threads, or one for each.
void find_in(benchmark::State& state, uint64_t entries, const std::vector<std::unique_ptr<Setup>>& setups) {
  constexpr uint64_t kEach = 4'000'000;
  for (const auto& s : setups) s->fill(entries);
  Rounds rounds(state, kEach);
  uint64_t seed = 1;
  for (auto _ : state) {
    seed += 2;
    rounds.run([&](uint64_t t) {
      const ScaleCacheIndex& index = setups[t % setups.size()]->index;
      Rng rng(seed + t);
      uint64_t sum = 0;
      for (uint64_t i = 0; i < kEach; ++i) sum += index.find(rng.below(entries));
      benchmark::DoNotOptimize(sum);
    });
  }
  rounds.report(setups[0]->index);
}
std::vector<std::unique_ptr<Setup>> setups(int64_t count) {
  std::vector<std::unique_ptr<Setup>> made;
  for (int64_t i = 0; i < count; ++i) made.push_back(std::make_unique<Setup>());
  return made;
}
// Of a large index the machine decides where it lies, and with it what a miss of the TLB costs: on a virtual one a rate
// is up to four times another's. The small one shows what threads cost each other.
void find(benchmark::State& state) { find_in(state, kEntries, setups(1)); }
void find_near(benchmark::State& state) { find_in(state, kEntriesNear, setups(1)); }
void control_find_near(benchmark::State& state) { find_in(state, kEntriesNear, setups(state.range(0))); }
BENCHMARK(find)->Apply(one_and_two_threads);
BENCHMARK(find_near)->Apply(one_and_two_threads);
BENCHMARK(control_find_near)->Apply(one_and_two_threads);

// `index_of(thread, i)` is where a thread's i-th entry goes. Indexes come and go with each
// round and leave their nodes in the pool: the kernel's work for new memory is in the first
// only, which does not count. `indexes`: as for find(). A last entry makes each tree as high
// as with both threads' entries, or one thread's first ones would go into a lower tree.
template <class IndexOf>
void insert(benchmark::State& state, uint64_t each, uint64_t indexes, IndexOf index_of) {
  auto all = setups(static_cast<int64_t>(indexes));
  const auto threads = static_cast<uint64_t>(state.range(0));
  Rounds rounds(state, each);
  std::vector<std::unique_ptr<ScaleCacheIndex>> made(indexes);
  auto make = [&] {
    for (uint64_t i = 0; i < indexes; ++i) made[i].reset();
    for (uint64_t i = 0; i < indexes; ++i) {
      made[i] = std::make_unique<ScaleCacheIndex>(all[i]->pool);
      SPW_CHECK(made[i]->insert(kLast, 1) == Insertion::kInserted);
    }
  };
  auto work = [&](uint64_t t) {
    ScaleCacheIndex& index = *made[t % indexes];
    for (uint64_t i = 0; i < each; ++i) (void)index.insert(index_of(t, i), i + 1);
  };
  make();
  for (uint64_t t = 0; t < threads; ++t) work(t);
  for (auto _ : state) {
    make();
    rounds.run(work);
  }
  rounds.report(*made[0]);
}
void insert_own_range(benchmark::State& state) {
  insert(state, kEntries, 1, [](uint64_t t, uint64_t i) { return t * kEntries + i; });
}
// Threads take leaves in turn, of 64 blocks each.
void insert_own_leaves(benchmark::State& state) {
  const auto threads = static_cast<uint64_t>(state.range(0));
  insert(state, kEntries, 1, [=](uint64_t t, uint64_t i) { return (i / 64 * threads + t) * 64 + i % 64; });
}
// Every second block: both threads work in the same cache lines, mostly at the same time.
void insert_interleaved(benchmark::State& state) {
  const auto threads = static_cast<uint64_t>(state.range(0));
  insert(state, kEntries, 1, [=](uint64_t t, uint64_t i) { return i * threads + t; });
}
// A node for each entry, and one above for every 64.
void insert_far_apart(benchmark::State& state) {
  insert(state, kEntries / 10, 1, [](uint64_t t, uint64_t i) { return (t * kEntries / 10 + i) * 64; });
}
void control_insert(benchmark::State& state) {
  insert(state, kEntries, static_cast<uint64_t>(state.range(0)),
         [](uint64_t t, uint64_t i) { return t * kEntries + i; });
}
BENCHMARK(control_insert)->Apply(one_and_two_threads);
BENCHMARK(insert_own_range)->Apply(one_and_two_threads);
BENCHMARK(insert_own_leaves)->Apply(one_and_two_threads);
BENCHMARK(insert_interleaved)->Apply(one_and_two_threads);
BENCHMARK(insert_far_apart)->Apply(one_and_two_threads);

// One entry goes, another comes, at random among twice as many places: what evictions and misses do.
void erase_and_insert(benchmark::State& state) {
  constexpr uint64_t kEach = 1'000'000;
  Setup s;
  for (uint64_t i = 0; i < kEntries; i += 2) (void)s.index.insert(i, i + 1);
  Rounds rounds(state, kEach);
  uint64_t seed = 1;
  for (auto _ : state) {
    seed += 2;
    rounds.run([&](uint64_t t) {
      Rng rng(seed + t);
      for (uint64_t i = 0; i < kEach; ++i) {
        (void)s.index.erase(rng.below(kEntries));
        (void)s.index.insert(rng.below(kEntries), i + 1);
      }
    });
  }
  rounds.report(s.index);
}
BENCHMARK(erase_and_insert)->Apply(one_and_two_threads);

}  // namespace
}  // namespace spw::lab

BENCHMARK_MAIN();
