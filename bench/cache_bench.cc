// The shared cache by itself: what a hit costs, what a miss costs in processor time beside the disk's own rate, and the
// bandwidth of streams beyond memory.
//
//   SPILLWAY_BENCH_FILE  a file to read randomly; made with 4 GiB if it does not exist (default: in /var/tmp)
//   SPILLWAY_BENCH_SECONDS  length of each run that does I/O (default 5)
//
// Compare with fio on the same file:
//   fio --name=x --filename=FILE --readonly --rw=randread --bs=4k
//       --direct=1 --ioengine=psync --numjobs=N --thread --norandommap
//       --time_based --runtime=5 --group_reporting        (all in one line)
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "base/units.h"
#include "cache/cache.h"
#include "store/file_store.h"
#include "store/memory_store.h"
#include "telemetry/counters.h"

namespace spw::cache {
namespace {

using telemetry::Counter;

constexpr uint64_t kFileBytes = 4 * kGiB;
constexpr unsigned kShift = 12;

double seconds_per_run() {
  const char* text = std::getenv("SPILLWAY_BENCH_SECONDS");
  return text ? std::atof(text) : 5;
}

std::string file_path() {
  const char* path = std::getenv("SPILLWAY_BENCH_FILE");
  return path ? path : "/var/tmp/spillway_cache_bench.data";
}

void make_file(const std::string& path) {
  struct stat seen{};
  if (::stat(path.c_str(), &seen) == 0 && static_cast<uint64_t>(seen.st_size) >= kFileBytes) return;
  std::FILE* file = std::fopen(path.c_str(), "w");
  SPW_CHECK(file != nullptr);
  std::vector<uint64_t> piece(kMiB / sizeof(uint64_t));
  Rng rng(1);
  for (uint64_t done = 0; done < kFileBytes; done += kMiB) {
    for (uint64_t& word : piece) word = rng.next();
    SPW_CHECK(std::fwrite(piece.data(), kMiB, 1, file) == 1);
  }
  std::fflush(file);
  ::fdatasync(::fileno(file));
  std::fclose(file);
}

// Block b at offset b << shift; `blocks` of them have contents from the start.
class Blocks final : public BlockSource {
 public:
  Blocks(store::Store& store, uint64_t blocks, bool contents)
      : store_(store), contents_(std::make_unique<Atomic<uint8_t>[]>(blocks)) {
    for (uint64_t b = 0; contents && b < blocks; ++b) contents_[b].store_relaxed(1);
  }
  Backing locate_for_fill(BlockId b) override {
    return {&store_, b.value << kShift, contents_[b.value].load_acquire() != 0};
  }
  Backing locate_for_writeback(BlockId b) override { return {&store_, b.value << kShift, true}; }
  void written_back(BlockId b, const store::Store*) override { contents_[b.value].store_release(1); }

 private:
  store::Store& store_;
  std::unique_ptr<Atomic<uint8_t>[]> contents_;
};

void fail(void*, const Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::abort();
}

struct Setup {
  std::unique_ptr<store::Store> store;
  std::unique_ptr<Blocks> blocks;
  std::unique_ptr<SharedCache> cache;

  Setup(std::unique_ptr<store::Store> over, uint64_t block_count, bool contents, uint32_t frames,
        Delegation delegation)
      : store(std::move(over)), blocks(std::make_unique<Blocks>(*store, block_count, contents)) {
    Options options;
    options.frame_count = frames;
    options.delegation = delegation;
    auto made = SharedCache::create(options, *blocks, fail, nullptr);
    if (!made) fail(nullptr, made.status());
    cache = std::move(*made);
  }
};

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](timeval t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Gives every frame a block, so that what is measured starts with a full cache.
void fill_frames(SharedCache& cache) {
  Client* client = *cache.open_client();
  Pin pin;
  for (uint64_t b = 0; cache.free_frames() > cache.frame_count() / 100; ++b) {
    (void)cache.pin(*client, BlockId(b), Access::kRead, &pin);
    cache.unpin(*client, pin.frame);
  }
  cache.close_client(client);
}

// Runs `work(client, thread, stop)` in threads until the run's time is over; tells rates.
template <class Work>
void run_for_a_while(benchmark::State& state, SharedCache& cache, int threads, Work work) {
  fill_frames(cache);
  auto before = telemetry::read_totals();
  double cpu = cpu_seconds();
  auto start = std::chrono::steady_clock::now();
  std::atomic<bool> stop{false};
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      Client* client = *cache.open_client();
      work(*client, t, stop);
      cache.close_client(client);
    });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds_per_run()));
  stop = true;
  for (std::thread& thread : running) thread.join();
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  cpu = cpu_seconds() - cpu;
  auto after = telemetry::read_totals();
  auto moved = [&](Counter c) { return static_cast<double>(total(after, c) - total(before, c)); };
  state.SetIterationTime(took.count());
  state.counters["misses_per_s"] = moved(Counter::fills) / took.count();
  state.counters["cpu_us_per_miss"] = 1e6 * cpu / moved(Counter::shared_misses);
  state.counters["read_MB_per_s"] = moved(Counter::store_read_bytes) / 1e6 / took.count();
  state.counters["write_MB_per_s"] = moved(Counter::store_write_bytes) / 1e6 / took.count();
  state.counters["read_KB_each"] = moved(Counter::store_read_bytes) / 1e3 / moved(Counter::store_reads);
  state.counters["write_KB_each"] = moved(Counter::store_write_bytes) / 1e3 / moved(Counter::store_writes);
  state.counters["cpus"] = cpu / took.count();
  state.counters["delegated_share"] = moved(Counter::delegated) / moved(Counter::shared_misses);
  state.counters["dirty_waits"] = moved(Counter::dirty_evictions);
}

std::unique_ptr<store::Store> memory_store(uint64_t bytes) {
  auto made = store::MemoryStore::create(bytes);
  SPW_CHECK(made.is_ok());
  return std::move(*made);
}

std::unique_ptr<store::Store> file_store() {
  make_file(file_path());
  auto made = store::FileStore::open(file_path());
  if (!made) fail(nullptr, made.status());
  return std::move(*made);
}

void hit(benchmark::State& state) {
  auto frames = static_cast<uint32_t>(state.range(0));
  Setup s(memory_store(uint64_t{frames} << kShift), frames, false, frames + frames / 4,
          Delegation::kCombining);
  Client* client = *s.cache->open_client();
  Pin pin;
  for (uint64_t b = 0; b < frames; ++b) {
    SPW_CHECK(s.cache->pin(*client, BlockId(b), Access::kRead, &pin).is_ok());
    s.cache->unpin(*client, pin.frame);
  }
  Rng rng(1);
  for (auto _ : state) {
    (void)s.cache->pin(*client, BlockId(rng.below(frames)), Access::kRead, &pin);
    benchmark::DoNotOptimize(pin.data);
    s.cache->unpin(*client, pin.frame);
  }
  s.cache->close_client(client);
}
BENCHMARK(hit)->Arg(1000)->Arg(100'000)->Arg(1'000'000);

// Everything about a miss but the disk: random reads over a memory store, a tenth in frames.
void miss_without_disk(benchmark::State& state) {
  constexpr uint64_t kCount = 200'000;
  Setup s(memory_store(kCount << kShift), kCount, true, kCount / 10, Delegation::kCombining);
  Client* client = *s.cache->open_client();
  Pin pin;
  Rng rng(1);
  for (auto _ : state) {
    (void)s.cache->pin(*client, BlockId(rng.below(kCount)), Access::kRead, &pin);
    benchmark::DoNotOptimize(pin.data);
    s.cache->unpin(*client, pin.frame);
  }
  s.cache->close_client(client);
}
BENCHMARK(miss_without_disk);

// Runs that do I/O take two arguments: how many threads, and whether server threads own the partitions.
template <int64_t... kThreads>
void with_threads(benchmark::internal::Benchmark* run) {
  run->ArgNames({"threads", "dedicated"})
      ->ArgsProduct({{kThreads...}, {0, 1}})
      ->Iterations(1)
      ->UseManualTime();
}

void random_accesses(benchmark::State& state, Access access) {
  constexpr uint64_t kCount = kFileBytes >> kShift;
  Setup s(file_store(), kCount, true, kCount / 10, static_cast<Delegation>(state.range(1)));
  for (auto _ : state)
    run_for_a_while(state, *s.cache, static_cast<int>(state.range(0)),
                    [&](Client& client, int t, std::atomic<bool>& stop) {
                      Rng rng(static_cast<uint64_t>(t) + static_cast<uint64_t>(::getpid()) * 1000);
                      Pin pin;
                      while (!stop) {
                        (void)s.cache->pin(client, BlockId(rng.below(kCount)), access, &pin);
                        auto* word = reinterpret_cast<volatile uint64_t*>(pin.data);
                        uint64_t value = *word;
                        if (access == Access::kWrite) *word = value + 1;
                        s.cache->unpin(client, pin.frame);
                      }
                    });
}
void random_reads(benchmark::State& state) { random_accesses(state, Access::kRead); }
void random_updates(benchmark::State& state) { random_accesses(state, Access::kWrite); }
BENCHMARK(random_reads)->Apply(with_threads<1, 2, 16>);
BENCHMARK(random_updates)->Apply(with_threads<1, 16>);

void sequential(benchmark::State& state, Access access) {
  constexpr uint64_t kCount = kFileBytes >> kShift;
  Setup s(file_store(), kCount, true, kCount / 10, static_cast<Delegation>(state.range(1)));
  auto threads = static_cast<int>(state.range(0));
  for (auto _ : state)
    run_for_a_while(state, *s.cache, threads, [&](Client& client, int t, std::atomic<bool>& stop) {
      uint64_t share = kCount / static_cast<uint64_t>(threads);
      Pin pin;
      for (uint64_t b = 0; !stop; b = (b + 1) % share) {
        (void)s.cache->pin(client, BlockId(static_cast<uint64_t>(t) * share + b), access, &pin);
        if (access == Access::kOverwrite) std::memset(pin.data, static_cast<int>(b), size_t{1} << kShift);
        benchmark::DoNotOptimize(*reinterpret_cast<volatile uint64_t*>(pin.data));
        s.cache->unpin(client, pin.frame);
      }
    });
}
void sequential_reads(benchmark::State& state) { sequential(state, Access::kRead); }
void sequential_writes(benchmark::State& state) { sequential(state, Access::kOverwrite); }
void sequential_updates(benchmark::State& state) { sequential(state, Access::kWrite); }
BENCHMARK(sequential_reads)->Apply(with_threads<1, 2>);
BENCHMARK(sequential_writes)->Apply(with_threads<1, 2>);
BENCHMARK(sequential_updates)->Apply(with_threads<1>);

}  // namespace
}  // namespace spw::cache

BENCHMARK_MAIN();
