// How fast a file store reads 4 KiB blocks at random: transfer() from several threads, and each engine 64 deep. Beside
// it run fio on the same file for the disk's own rate; items_per_second is reads.
//
//     SPILLWAY_BENCH_FILE=/mnt/nvme/4g build/release/bin/store_bench --benchmark_out=result.json
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <vector>

#include "base/rng.h"
#include "platform/memory.h"
#include "store/file_store.h"

namespace spw::store {
namespace {

constexpr uint64_t kReadBytes = 4096;
constexpr size_t kDepth = 64;

// The store under test, opened anew for every run; nothing without SPILLWAY_BENCH_FILE.
std::unique_ptr<FileStore> open_file(benchmark::State& state, IoEngineKind engine) {
  const char* path = std::getenv("SPILLWAY_BENCH_FILE");
  if (!path) {
    state.SkipWithError("SPILLWAY_BENCH_FILE names no file to read");
    return nullptr;
  }
  FileOptions options;
  options.engine = engine;
  auto store = FileStore::open(path, options);
  if (!store) {
    state.SkipWithError(store.status().message().c_str());
    return nullptr;
  }
  return std::move(*store);
}

void aim(Request& request, const FileStore& store, Rng& rng) {
  request.offset_bytes = rng.below(store.size_bytes() / kReadBytes) * kReadBytes;
}

void transfer_random(benchmark::State& state) {
  auto store = open_file(state, IoEngineKind::kAuto);
  auto memory = platform::map_anonymous(kReadBytes);
  if (!store || !memory) return;
  Rng rng(static_cast<uint64_t>(state.thread_index()) + 1);
  Request request;
  request.segment_count = 1;
  request.segments[0] = {memory->data(), kReadBytes};
  for (auto _ : state) {
    aim(request, *store, rng);
    if (!store->transfer(request)) state.SkipWithError("a read failed");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(transfer_random)->Threads(1)->Threads(2)->Threads(16)->UseRealTime()->MeasureProcessCPUTime();

void queue_random(benchmark::State& state, IoEngineKind engine) {
  auto store = open_file(state, engine);
  auto memory = platform::map_anonymous(kDepth * kReadBytes);
  if (!store || !memory) return;
  Rng rng(1);
  std::vector<Request> requests(kDepth);
  std::vector<Request*> idle;
  for (size_t i = 0; i < kDepth; ++i) {
    requests[i].segment_count = 1;
    requests[i].segments[0] = {memory->data() + i * kReadBytes, kReadBytes};
    idle.push_back(&requests[i]);
  }
  auto queue = store->open_queue(kDepth);  // ends first, with reads in flight that need the requests
  if (!queue) return state.SkipWithError(queue.status().message().c_str());
  int64_t reads = 0;
  for (auto _ : state) {  // one iteration: submit what is idle, wait, reap what is there
    for (Request* request : idle) aim(*request, *store, rng);
    (*queue)->submit(idle);
    idle.clear();
    Completion done[kDepth];
    size_t count = 0;
    while ((count = (*queue)->reap(done)) == 0) (*queue)->wait(UINT64_MAX);
    for (size_t i = 0; i < count; ++i) {
      if (done[i].error) state.SkipWithError("a read failed");
      idle.push_back(done[i].request);
    }
    reads += static_cast<int64_t>(count);
  }
  state.SetItemsProcessed(reads);
}
BENCHMARK_CAPTURE(queue_random, io_uring, IoEngineKind::kUring)->UseRealTime()->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(queue_random, libaio, IoEngineKind::kAio)->UseRealTime()->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(queue_random, threads, IoEngineKind::kThreads)->UseRealTime()->MeasureProcessCPUTime();

}  // namespace
}  // namespace spw::store

BENCHMARK_MAIN();
