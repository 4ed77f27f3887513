// S3-FIFO: three queues, none of which is reordered by a use (Yang, Zhang, Qiu, Yue, Rashmi: "FIFO queues are all you
// need for cache eviction", SOSP 2023, algorithm 1). New blocks wait in a small one; those used more than once
// meanwhile go over to the main one, the others leave, to be remembered as ghosts. What comes back as a ghost goes to
// the main queue at once. There a block gets as many more rounds as it had uses, three at most.
//
//     new --> small --more than one use--> main ⟲ while it has uses left
//                   --else--> evicted, a ghost --came back--^
//
// Uses are learned from touches, so a use is a stay in some thread's translation cache, however many accesses it had.
// The first one is why the block came (or was read ahead) and does not count.
// Invariants: a frame is in one of the two lists <=> it holds a block and is not on offer
//             kNotUsedYet <= uses_[f] <= kUsesMax
// Threads: none (policy.h). Memory: 18 bytes a frame. All operations take constant time but next_candidate(), which
// looks at each frame of main four times at most, and gives a list up after kBusyLooksMax busy ones.
#pragma once

#include <vector>

#include "cache/eviction/counted_lists.h"
#include "cache/eviction/ghosts.h"
#include "cache/eviction/policy.h"

namespace spw::cache {

class S3FifoPolicy final : public Policy {
 public:
  explicit S3FifoPolicy(uint32_t frame_count);

  const char* name() const override { return "s3-fifo"; }
  void on_insert(uint32_t frame, BlockId block) override;
  void on_remove(uint32_t frame, BlockId block) override;
  void on_keep(uint32_t frame) override { lists_.put(lists_.list_of(frame), frame); }
  void on_touch(uint32_t frame) override;
  bool wants_touches() const override { return true; }
  void on_limit(uint32_t frames) override;
  void on_passed(uint32_t blocks) override { ghosts_.pass(blocks); }
  uint32_t next_candidate(FrameProbe& frames) override;
  bool goes_along(uint32_t frame) override;
  void prefetch_block(BlockId block) const override { ghosts_.prefetch(Ghosts::of(block)); }
  void prefetch_frame(uint32_t frame) const override { lists_.prefetch(frame); }
  uint64_t metadata_bytes() const override;
  void check_invariants(const std::vector<uint8_t>& may_be_offered) const override;

 private:
  enum List : uint8_t { kSmall, kMain, kLists };
  static constexpr uint32_t kSmallShare = 10;  // of the frames: the paper's tenth
  static constexpr int8_t kNotUsedYet = -1;
  static constexpr int8_t kUsesMax = 3;  // two bits
  static constexpr int8_t kUsesToStay = 2;
  static constexpr uint32_t kBusyLooksMax = 128;

  uint32_t candidate_of_small(FrameProbe& frames);
  uint32_t candidate_of_main(FrameProbe& frames);

  uint32_t small_max_ = 0;
  CountedLists lists_;
  Ghosts ghosts_;
  std::vector<int8_t> uses_;
};

}  // namespace spw::cache
