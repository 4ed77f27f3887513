#include "store/compression_probe.h"

#include "platform/time.h"
#include "store/compressed/object_pool.h"

namespace spw::store {

class CompressionProbe::Queue final : public QueueAround {
 public:
  Queue(CompressionProbe& store, std::unique_ptr<IoQueue> device)
      : QueueAround(std::move(device)), store_(store) {}

  size_t enqueue(std::span<Request* const> requests) override {
    const size_t taken = device().enqueue(requests);
    for (Request* const request : requests.first(taken)) store_.look_at(*request);
    return taken;
  }
  size_t reap(std::span<Completion> out) override { return device().reap(out); }

 private:
  CompressionProbe& store_;
};

Result<std::unique_ptr<IoQueue>> CompressionProbe::open_queue(size_t depth) {
  auto queue = device().open_queue(depth);
  if (!queue) return queue;
  return std::unique_ptr<IoQueue>(std::make_unique<Queue>(*this, std::move(*queue)));
}

Status CompressionProbe::transfer(Request& request) {
  look_at(request);
  return device().transfer(request);
}

void CompressionProbe::look_at(const Request& request) {
  if (request.op != Op::kWrite || !is_of_whole_pages(request)) return;
  for_each_page(request, [this](uint64_t page, const std::byte* contents) {
    // Of all pages equally many, however large the requests are.
    if (page * 0x9E3779B97F4A7C15u >> 32 < (uint64_t{1} << 32) / ProbedPages::kEvery) look_at(contents);
    return true;
  });
}

void CompressionProbe::look_at(const std::byte* page) {
  found_.codec->compress(page, ObjectPool::kObjectBytesMax, [this](const std::byte* bytes, size_t count) {
    if (count == 0) return;
    std::byte opened[PageCodec::kPageBytes];
    const uint64_t begun_ns = platform::monotonic_ns();
    static_cast<void>(found_.codec->open(bytes, count, opened));
    found_.open_ns.fetch_add_relaxed(platform::monotonic_ns() - begun_ns);
  });
}

void CompressionProbe::in_child() {
  found_.codec->in_child();
  StoreAround::in_child();
}

}  // namespace spw::store
