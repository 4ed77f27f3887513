// How fast a store reads, with so many reads under way: by its queue, without a cache above it. Beside it
// bench/remote.py runs fio with the same image.
//
//   store_reads STORE BLOCK_BYTES DEPTH random|sequential RAMP_SECONDS SECONDS
//       prints JSON: reads a second after the ramp
//
// Sequential reads begin again at the start when they get to the end.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "platform/memory.h"
#include "platform/time.h"
#include "store/open_store.h"

namespace spw::store {
namespace {

struct Plan {
  uint64_t block_bytes = 0, depth = 0;
  bool random = false;
  double ramp_s = 0, seconds = 0;
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "store_reads: %s\n", what.c_str());
  std::exit(1);
}

class Reader {
 public:
  Reader(Store& store, const Plan& plan) : plan_(plan), blocks_(store.size_bytes() / plan.block_bytes) {
    if (blocks_ == 0) fail("the store is smaller than a block");
    auto memory = platform::map_anonymous(plan.depth * plan.block_bytes);
    if (!memory) fail(memory.status().message());
    memory_ = std::move(*memory);
    requests_.resize(plan.depth);
    for (size_t i = 0; i < requests_.size(); ++i) {
      requests_[i].segment_count = 1;
      requests_[i].segments[0] = {memory_.data() + i * plan.block_bytes, plan.block_bytes};
      idle_.push_back(&requests_[i]);
    }
    auto queue = store.open_queue(plan.depth);
    if (!queue) fail(queue.status().message());
    queue_ = std::move(*queue);
  }
  ~Reader() {
    while (queue_->in_flight() > 0) reap();
  }

  // How many reads ended until then; others are under way.
  uint64_t read_until(uint64_t end_ns) {
    uint64_t reads = 0;
    while (platform::monotonic_ns() < end_ns) {
      for (Request* request : idle_) request->offset_bytes = next_block() * plan_.block_bytes;
      if (queue_->submit(idle_) != idle_.size()) fail("the queue takes fewer than its depth");
      idle_.clear();
      reads += reap();
    }
    return reads;
  }

 private:
  uint64_t next_block() { return plan_.random ? rng_.below(blocks_) : next_++ % blocks_; }

  uint64_t reap() {
    Completion done[64];
    size_t count = 0;
    while ((count = queue_->reap(done)) == 0) queue_->wait(UINT64_MAX);
    for (size_t i = 0; i < count; ++i) {
      if (done[i].error != 0) fail(std::strerror(done[i].error));
      idle_.push_back(done[i].request);
    }
    return count;
  }

  const Plan plan_;
  const uint64_t blocks_;
  Rng rng_{1};
  uint64_t next_ = 0;
  platform::Mapping memory_;
  std::vector<Request> requests_;
  std::vector<Request*> idle_;
  std::unique_ptr<IoQueue> queue_;
};

int run(const char* name, const Plan& plan) {
  auto store = open_store(name);
  if (!store) fail(store.status().message());
  Reader reader(**store, plan);
  reader.read_until(platform::monotonic_ns() + static_cast<uint64_t>(plan.ramp_s * platform::kNsPerSecond));
  const uint64_t start_ns = platform::monotonic_ns();
  const uint64_t reads =
      reader.read_until(start_ns + static_cast<uint64_t>(plan.seconds * platform::kNsPerSecond));
  const double took_s = static_cast<double>(platform::monotonic_ns() - start_ns) / platform::kNsPerSecond;
  std::printf("{\"reads_per_s\": %.1f}\n", static_cast<double>(reads) / took_s);
  return 0;
}

}  // namespace
}  // namespace spw::store

int main(int argc, char** argv) {
  const std::string_view order = argc == 7 ? argv[4] : "";
  spw::store::Plan plan;
  if (argc == 7)
    plan = {std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10), order == "random",
            std::strtod(argv[5], nullptr), std::strtod(argv[6], nullptr)};
  if (plan.block_bytes == 0 || plan.depth == 0 || (order != "random" && order != "sequential")) {
    std::fprintf(stderr, "usage: %s STORE BLOCK_BYTES DEPTH random|sequential RAMP_SECONDS SECONDS\n",
                 argv[0]);
    return 2;
  }
  return spw::store::run(argv[1], plan);
}
