// Clock2Q+: a new block has to show that it is needed before it may displace one that did. Scans, of which each block
// is used many times within a moment and then never, leave the others alone.
//
//     new --window--> old --used meanwhile----------> main ⟲ CLOCK, second chance
//                         --not used--> evicted, a ghost --came back--> returned --window--^
//
// `new` is the correlation window: uses of a block soon after the first say nothing about the next (one walk along it),
// so they are forgotten when it goes over to `old`, where it does not go while it is held. What comes back has a window
// of its own, as a part of main: a bit of use in main is always a use that came later. A block that was read ahead may
// have no use when it becomes old; its first one in `old` tells no more than a miss, and gives it another round there.
// Until the first candidate is wanted all go to `main`: nothing needs to be displaced. Candidates come from `old` while
// new and old together are more than their share, else from `main`. Where uses are not seen (page faults of unmodified
// programs), ghosts alone tell who is needed.
//
// From 2Q (Johnson and Shasha, VLDB 1994) as Clock2Q+ improves it:
// one bit of use and a CLOCK instead of LRU lists, the window.
// Invariants: a frame is in one of the lists <=> it holds a block and is not on offer
// Threads: none (policy.h). Memory: 25 bytes a frame. All operations take constant time but next_candidate(), which
// looks at each frame twice at most, and gives a list up after kBusyLooksMax busy ones.
#pragma once

#include <vector>

#include "cache/eviction/counted_lists.h"
#include "cache/eviction/ghosts.h"
#include "cache/eviction/policy.h"

namespace spw::cache {

class Clock2qPolicy final : public Policy {
 public:
  explicit Clock2qPolicy(uint32_t frame_count);

  const char* name() const override { return "clock2q+"; }
  void on_insert(uint32_t frame, BlockId block) override;
  void on_remove(uint32_t frame, BlockId block) override;
  void on_keep(uint32_t frame) override { lists_.put(lists_.list_of(frame), frame); }
  void on_touch(uint32_t) override {}
  bool wants_touches() const override { return false; }
  bool came_back(uint32_t frame) const override { return lists_.list_of(frame) == kReturned; }
  void on_limit(uint32_t frames) override;
  void on_passed(uint32_t blocks) override { ghosts_.pass(blocks); }
  uint32_t next_candidate(FrameProbe& frames) override;
  bool goes_along(uint32_t frame) override;
  bool clears_ahead() const override { return true; }
  void prefetch_block(BlockId block) const override { ghosts_.prefetch(Ghosts::of(block)); }
  void prefetch_frame(uint32_t frame) const override { lists_.prefetch(frame); }
  uint64_t metadata_bytes() const override;
  void check_invariants(const std::vector<uint8_t>& may_be_offered) const override;

 private:
  enum List : uint8_t { kNew, kOld, kReturned, kMain, kLists };
  // Of the frames, new and old ones together: more than are read ahead at a time (partition.h). Of those, new ones.
  static constexpr uint32_t kProbationShare = 6;
  static constexpr uint32_t kWindowShare = 2;
  // With one, loops over more than 1.1 times the memory find no ghost of theirs once main is full of other blocks.
  static constexpr uint32_t kGhostsAFrame = 2;
  // Frames that leave the window each time a candidate is wanted: more than come where
  // candidates go alone, so the window shrinks to its share; where
  // neighbours go along with them it may stay above it for a while.
  static constexpr uint32_t kAgedAtOnce = 4;
  // Busy frames passed over before the other list is tried: nearly all of main may be pinned.
  static constexpr uint32_t kBusyLooksMax = 128;

  void age(FrameProbe& frames, List window, List next);
  uint32_t candidate_on_probation(FrameProbe& frames);
  uint32_t candidate_of_main(FrameProbe& frames);

  uint32_t probation_max_ = 0;
  uint32_t window_ = 0;
  CountedLists lists_;
  Ghosts ghosts_;
  std::vector<bool> is_unused_;  // of those in or from `old`: not used yet
  bool is_full_ = false;
};

}  // namespace spw::cache
