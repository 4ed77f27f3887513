// Random reads of one block through the shared cache, beside the same number of
// threads that read the file past the page cache: the experiment of SA-cache's Figure
// 3. In turns of a moment each, so that a disk that changes its mind does so for all.
//
//   iops_bench FILE BLOCKS SECONDS_A_TURN TURNS THREADS... -- POLICY...
//
// The cache holds a kShare-th of the file, so next to nothing is a hit; what is counted is blocks read. Direct I/O is
// measured twice: each thread reads into one buffer of its own, which stays in the processor's caches ("direct"), and
// into as much memory as the caches have ("direct, spread"), which is what any cache has to do. Prints JSON: for each
// number of threads the rates of all turns, of both and of each policy.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "cache/cache.h"
#include "platform/memory.h"
#include "store/file_store.h"

namespace spw::cache {
namespace {

constexpr unsigned kShift = 12;
constexpr size_t kBlockBytes = size_t{1} << kShift;
constexpr uint64_t kShare = 64;
constexpr int kThreadsMax = 256;

class FileBlocks final : public BlockSource {
 public:
  explicit FileBlocks(store::Store& store) : store_(store) {}
  Backing locate_for_fill(BlockId block) override { return {&store_, block.value << kShift, true}; }
  Backing locate_for_writeback(BlockId block) override { return locate_for_fill(block); }
  void written_back(BlockId, const store::Store*) override {}

 private:
  store::Store& store_;
};

void fail(void*, const Status& status) {
  std::fprintf(stderr, "iops_bench: %s\n", status.message().c_str());
  std::exit(1);
}

template <class T>
T need(Result<T> made) {
  if (!made) fail(nullptr, made.status());
  return std::move(*made);
}

// `work(thread, stop)` says how many blocks it read.
double rate(int threads, double seconds, const std::function<uint64_t(int, std::atomic<bool>&)>& work) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> done{0};
  std::vector<std::thread> running;
  const auto start = std::chrono::steady_clock::now();
  for (int t = 0; t < threads; ++t) running.emplace_back([&, t] { done += work(t, stop); });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : running) thread.join();
  return static_cast<double>(done) /
         std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Rng rng_of(int thread) {
  static std::atomic<uint64_t> turn{1};
  return Rng((turn++ << 16) + static_cast<uint64_t>(thread));
}

class Direct {
 public:
  // Buffers of so many blocks in all.
  Direct(const std::string& path, uint64_t buffers)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC)),
        buffers_(buffers),
        memory_(need(platform::map_table(buffers << kShift))) {
    if (descriptor_ < 0) fail(nullptr, Status(errno, "opening " + path + " for direct I/O"));
  }
  ~Direct() { ::close(descriptor_); }

  uint64_t read(int thread, uint64_t blocks, std::atomic<bool>& stop) const {
    Rng rng = rng_of(thread);
    uint64_t done = 0;
    for (; !stop; ++done) {
      const uint64_t which = buffers_ > kThreadsMax ? rng.below(buffers_) : static_cast<uint64_t>(thread);
      std::byte* const buffer = memory_.data() + (which << kShift);
      const auto offset = static_cast<off_t>(rng.below(blocks) << kShift);
      if (::pread(descriptor_, buffer, kBlockBytes, offset) != static_cast<ssize_t>(kBlockBytes))
        fail(nullptr, Status(errno, "reading directly"));
    }
    return done;
  }

 private:
  int descriptor_;
  const uint64_t buffers_;
  platform::Mapping memory_;
};

class Cached {
 public:
  Cached(const std::string& path, const std::string& policy, uint64_t blocks)
      : store_(need(store::FileStore::open(path))), source_(*store_) {
    Options options;
    options.frame_count = static_cast<uint32_t>(blocks / kShare);
    options.policy = policy;
    cache_ = need(SharedCache::create(options, source_, fail, nullptr));
  }

  uint64_t read(int thread, uint64_t blocks, std::atomic<bool>& stop) const {
    Client* client = *cache_->open_client();
    Rng rng = rng_of(thread);
    uint64_t done = 0;
    Pin pin;
    while (!stop) {
      (void)cache_->pin(*client, BlockId(rng.below(blocks)), Access::kRead, &pin);
      done += pin.was_miss;
      cache_->unpin(*client, pin.frame);
    }
    cache_->close_client(client);
    return done;
  }

 private:
  std::unique_ptr<store::Store> store_;
  FileBlocks source_;
  std::unique_ptr<SharedCache> cache_;
};

int run(const std::vector<std::string>& words) {
  const std::string& path = words[0];
  const uint64_t blocks = std::strtoull(words[1].c_str(), nullptr, 10);
  const double seconds = std::strtod(words[2].c_str(), nullptr);
  const size_t turns = std::strtoul(words[3].c_str(), nullptr, 10);
  std::vector<int> threads;
  size_t at = 4;
  for (; at < words.size() && words[at] != "--"; ++at)
    threads.push_back(std::clamp(std::atoi(words[at].c_str()), 1, kThreadsMax));
  const Direct direct(path, kThreadsMax), spread(path, blocks / kShare);
  std::vector<std::unique_ptr<Cached>> caches;
  std::vector<std::pair<std::string, std::function<uint64_t(int, std::atomic<bool>&)>>> readers;
  readers.emplace_back("direct", [&](int t, auto& stop) { return direct.read(t, blocks, stop); });
  readers.emplace_back("direct, spread", [&](int t, auto& stop) { return spread.read(t, blocks, stop); });
  for (++at; at < words.size(); ++at) {
    caches.push_back(std::make_unique<Cached>(path, words[at], blocks));
    readers.emplace_back(words[at], [&, cache = caches.back().get()](int t, auto& stop) {
      return cache->read(t, blocks, stop);
    });
  }
  nlohmann::json all = nlohmann::json::array();
  for (const int count : threads) {
    nlohmann::json rates;
    for (size_t turn = 0; turn <= turns; ++turn)  // the first one fills the caches
      for (size_t i = 0; i < readers.size(); ++i) {
        // Each comes after each of the others equally often.
        const auto& [name, read] =
            readers[(turn % 2 ? i + turn : readers.size() - 1 - i + turn) % readers.size()];
        const double found = rate(count, seconds, [&](int t, auto& stop) { return read(t, stop); });
        if (turn > 0) rates[name].push_back(found);
      }
    all.push_back({{"threads", count}, {"reads_per_s", rates}});
  }
  std::printf("%s\n", all.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace spw::cache

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: %s FILE BLOCKS SECONDS_A_TURN TURNS THREADS... -- POLICY...\n", argv[0]);
    return 2;
  }
  return spw::cache::run({argv + 1, argv + argc});
}
