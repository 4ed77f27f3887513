// A store that looks at some of the pages that are written to it: what they would come to if they were compressed. All
// else is as without it. For `spillway advise`.
//
// Threads, lifetime: as every store's.
#pragma once

#include <memory>

#include "base/atomic.h"
#include "store/compressed/page_codec.h"
#include "store/store_around.h"

namespace spw::store {

// What the probes of one process find together.
struct ProbedPages {
  // One page in so many is looked at.
  static constexpr uint64_t kEvery = 32;

  explicit ProbedPages(std::unique_ptr<PageCodec> by) : codec(std::move(by)) {}

  const std::unique_ptr<PageCodec> codec;
  Atomic<uint64_t> open_ns{0};  // of those that were compressed, all together
};

class CompressionProbe final : public StoreAround {
 public:
  // `found` outlives it.
  static std::unique_ptr<Store> around(std::unique_ptr<Store> device, ProbedPages& found) {
    return std::unique_ptr<Store>(new CompressionProbe(std::move(device), found));
  }

  uint64_t alignment_bytes() const override { return device().alignment_bytes(); }
  Result<std::unique_ptr<IoQueue>> open_queue(size_t depth) override;
  Status transfer(Request& request) override;
  void in_child() override;

 private:
  class Queue;

  CompressionProbe(std::unique_ptr<Store> device, ProbedPages& found)
      : StoreAround(std::move(device)), found_(found) {}
  void look_at(const Request& request);
  void look_at(const std::byte* page);
  bool fits(const Request&) override { return true; }

  ProbedPages& found_;
};

}  // namespace spw::store
