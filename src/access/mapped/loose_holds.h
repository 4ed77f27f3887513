// The loose blocks whose raw addresses a thread's recompiled code may be using, each held by a pin.
//
// Recompiled code asks for a raw address (abi/hints.h, *reach*) at sites that the pass numbers within a *segment*: a
// piece of code without calls and loops. When the site of number n asks, the thread may be using what sites of lower
// numbers got, and nothing else: what sites n and above hold is of no more use, and is let go.
// Invariant: the numbers of what is held ascend. Threads: one. Limits: SPW_REACHES_MAX holds, and numbers below it.
#pragma once

#include <array>
#include <cstdint>

#include "abi/hints.h"
#include "base/ids.h"
#include "cache/cache.h"

namespace spw::access {

struct LooseHold {
  BlockId block;
  FrameId frame = kNoFrame;
  std::byte* data = nullptr;
  uint32_t site = 0;
  bool is_writable = false;
};

class LooseHolds {
 public:
  // Site `site` asks for `block`: lets go what has ended, but for that block. The hold on it, or nullptr.
  LooseHold* begin(cache::SharedCache& cache, cache::Client& client, uint32_t site, BlockId block) {
    LooseHold kept;
    while (count_ > 0 && holds_[count_ - 1].site >= site) {
      const LooseHold& ended = holds_[--count_];
      if (ended.block == block && kept.frame == kNoFrame)
        kept = ended;
      else
        cache.unpin(client, ended.frame);
    }
    if (kept.frame == kNoFrame) return nullptr;
    kept.site = site;
    add(kept);
    return &holds_[count_ - 1];
  }
  void add(const LooseHold& hold) { holds_[count_++] = hold; }
  uint64_t count_of(BlockId block) const {
    uint64_t count = 0;
    for (uint32_t i = 0; i < count_; ++i) count += holds_[i].block == block;
    return count;
  }
  // That which begin() has found, or which was added.
  const LooseHold& last() const { return holds_[count_ - 1]; }
  void forget_last() { --count_; }
  void end_all(cache::SharedCache& cache, cache::Client& client) {
    while (count_ > 0) cache.unpin(client, holds_[--count_].frame);
  }

 private:
  std::array<LooseHold, SPW_REACHES_MAX> holds_;
  uint32_t count_ = 0;
};

}  // namespace spw::access
