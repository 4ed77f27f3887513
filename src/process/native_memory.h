// What the program has in memory beside managed memory: small allocations, stacks, what it asked the kernel for in
// ways that nobody manages.
//
//   held    = anonymous and shared memory of the process that is resident
//   native  = held - frames in use - what the plan of the cap has beside frames (memory_plan.h) - compressed pages,
//             where their share changes (compressed_share.h)
//
// The first kNativeAllowanceBytes of it come on top of the cap. What is more is taken from the frames, which keep
// 1 / kFramesShareMin (of what native memory takes; compressed pages may leave them less, compressed_share.h), so that
// the whole process keeps to its cap; and past the quota, mappings are managed from
// kOverQuotaBytes on and the heap by brk no longer grows (libc/alloc/rules.h). A process that holds more than its cap
// and kTolerance of it all the same says so, once, and what it mostly is.
// Looked at every kPeriodNs: a process may be over its cap for that long. With others below the same cap (tree_cap.h)
// it is kTreePeriodNs, and while the share of compressed pages changes kMovingPeriodNs, and frames have the room that
// what is granted leaves them. Of memory that forked processes still have in common each holds its part (Pss).
// Threads: the rule is pure; NativeMemory has two threads of its own. Lifetime: shorter than that of what it is made
// of.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "access/engine.h"
#include "base/atomic.h"
#include "cache/cache.h"
#include "platform/thread.h"
#include "process/closing.h"
#include "process/compressed_share.h"
#include "process/memory_limit.h"
#include "process/tree_cap.h"
#include "region/region_map.h"

namespace spw::process {

class NativeMemory {
 public:
  static constexpr uint64_t kNativeAllowanceBytes = uint64_t{32} << 20;
  static constexpr uint64_t kFramesShareMin = 4;
  static constexpr uint64_t kTolerance = 10;  // a tenth
  static constexpr uint64_t kPeriodNs = 100'000'000;
  static constexpr uint64_t kTreePeriodNs = 20'000'000;
  static constexpr uint64_t kMovingPeriodNs = 4'000'000;
  // Changes below this share of the cap are not worth theirs.
  static constexpr uint64_t kStepShare = 64;

  struct Parts {
    cache::SharedCache& cache;
    access::Engine& engine;
    const region::RegionMap& regions;
    MemoryLimit& limit;
    uint64_t cap_bytes;
    uint64_t frame_bytes;
    uint64_t quota_bytes;
    bool can_give_way;                       // the limit can change
    TreeCap* tree;                           // nullptr: the cap is this process's alone
    const PageCacheShare* page_cache_share;  // nullptr: no files are served by the kernel
    CompressedShare* compressed_share;       // nullptr: none, or one that the plan has
  };
  struct Held {
    uint64_t bytes;
    uint64_t frames;  // that blocks were in when that was measured
  };
  // What it is told of the world outside; tests make it up.
  struct Outside {
    std::function<std::optional<Held>()> held;
    // At each look: what it holds, and would hold if nothing had to leave memory.
    std::function<void(uint64_t held_bytes, uint64_t needs_bytes)> seen;
    // Once. `held_by_all`: by all members of the tree.
    std::function<void(uint64_t held_bytes, uint64_t held_by_all)> is_over;
    // `is_forked`: it still has memory in common with its parent.
    static Outside of_process(const Parts& parts, bool is_forked, Closing& closing);
  };
  NativeMemory(const Parts& parts, Outside outside) : parts_(parts), outside_(std::move(outside)) {}
  ~NativeMemory() { stop(); }

  Status start();
  void stop();
  // Of a run that was too short to be looked at.
  void at_end();
  uint64_t peak_bytes() const { return peak_bytes_.load_relaxed(); }

  // What it takes of frames that have `frames_bytes`.
  static uint64_t taken_from_frames(uint64_t native_bytes, uint64_t frames_bytes);
  static bool is_over(uint64_t held_bytes, uint64_t cap_bytes);

 private:
  void keep_looking();
  void keep_evicting(cache::Client& client);
  bool look();
  void tell(uint64_t held_bytes);
  uint64_t frames_of(const Held& held) const;
  uint64_t native_bytes(const Held& held) const;
  uint64_t taken_frames(const Held& held) const;
  uint64_t left_to_frames(const Held& held) const;
  uint64_t needs_bytes(const Held& held) const;
  bool has_others() const;
  uint64_t mapped_bytes() const;
  uint64_t counted_in_tree(const Held& held) const;
  uint64_t frames_in_tree(const Held& held);
  bool give_way(const Held& held);
  void share_with_compressed(const Held& held);

  const Parts parts_;
  const Outside outside_;
  uint64_t frames_ = 0;            // that may be in use, as it was last set
  uint64_t granted_ = UINT64_MAX;  // frames, beside others
  uint64_t over_since_ns_ = 0;
  Atomic<uint64_t> peak_bytes_{0};
  Atomic<bool> told_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  bool is_above_ = false;  // frames are to be evicted
  platform::Thread looks_, evicts_;
};

// A child is about to be forked, which will have memory in common with this process.
void note_fork();

// For a process that never had managed memory, at its end.
void tell_if_over(uint64_t cap_bytes);

}  // namespace spw::process
