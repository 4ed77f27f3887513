// Extents: parts of the space that are in memory in huge pages, whole, and come and go by moving page tables.
//
// A stream over more than the memory moves each block twice: in and out. Block by block each move is a copy by the
// kernel and a change of the page table, about a microsecond; an extent of 512 is read into a huge page, moved to
// its address and moved back for a microsecond each. Nothing is write-protected, since to move and to protect are two
// calls, between which a store would go unnoticed. Instead a sum of each page is taken when it has been read, and again
// when the extent has left its address: what differs is written (store/checked/checksum.h: all 64 bits).
//
// Parts: Extents (here) is what all agree on: a word for each extent, the slots, wishes. ExtentCache (extent_cache.h)
// stands before the block cache and is asked first. ExtentMover (extent_mover.h) is a thread that reads, evicts and
// writes extents. A block is in memory in one way at a time: as long as its extent's word is kNone it is the block
// cache's, and otherwise the block cache has none of the extent's blocks, and is not asked for one.
//
// Why that holds. A client that asks the block cache first publishes which extents it is about to ask for
//   (Client::in_extents), and then looks at their words; the mover first makes a word kClaimed, and then looks at what
//   clients have published, with a barrier in all threads in between (platform/process_barrier.h). So of a client and
//   the mover one sees the other: a client takes the claim back, and the mover waits until clients that are in there
//   have left. What they brought in or began to read is in the block cache's table then, of which its owners tell
//   exactly (SharedCache::take_out); if there is anything, the claim is given up. A client that comes later finds
//   kClaimed, and changes it to kNone; so when the mover changes it to kFilling, nobody has come.
// What the block cache does by itself does not leave the extent that its client has published: read-ahead and zeros
//   ahead are cut there (Client::reach), and what is left is asked for as from the beginning (Client::beyond).
// Modelled in tests/model/extent_claim.pml; what a fork asks for in extent_fork.pml.
// Threads: any. Limits: ExtentWord::kSlotsMax slots, kWishesMax wishes at a time; more are forgotten.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include "base/atomic.h"
#include "base/ids.h"
#include "base/status.h"
#include "cache/extents/extent_memory.h"
#include "cache/extents/extent_word.h"
#include "platform/memory.h"

namespace spw::cache {

// What is to become of an extent that somebody does not want any more.
enum class Settle : uint8_t { kNot, kWritten, kDropped };

class Extents {
 public:
  static constexpr uint64_t kNoExtent = UINT64_MAX;
  static constexpr uint32_t kAheadMax = 4, kAheadShare = 4;  // extents of a stream, read ahead
  struct Wish {
    uint64_t extent;
    uint32_t length;  // of the stream so far
  };
  struct Slot {
    Atomic<uint64_t> extent{kNoExtent};
    Atomic<uint64_t> settle{
        0};  // extent + 1 and Settle: whoever asks may come when the slot is another one's
    Atomic<uint32_t> length{0};            // of its stream, as far as that had been read
    Atomic<uint64_t> failing_since_ns{0};  // the mover's moves of it from its address; 0: the last was made

    Settle wanted() const {
      const uint64_t seen = settle.load_acquire();
      return seen >> 2 == extent.load_relaxed() + 1 ? static_cast<Settle>(seen & 3) : Settle::kNot;
    }
  };

  static Result<std::unique_ptr<Extents>> create(unsigned block_shift, ExtentMemory& memory);

  uint64_t of(BlockId block) const { return block.value >> shift_; }
  BlockId first_of(uint64_t extent) const { return BlockId(extent << shift_); }
  uint32_t blocks() const { return uint32_t{1} << shift_; }
  // Whole extents alone.
  uint64_t count() const { return count_; }
  AtomicExtentWord& word(uint64_t extent) { return words()[extent]; }
  Slot& slot(uint32_t slot) { return slots_[slot]; }
  ExtentMemory& memory() { return memory_; }

  // Takes a claim back, if there is one; what the word is then.
  ExtentWord unclaim(uint64_t extent);
  // Whether it is, or was just made, kNone.
  bool is_none(uint64_t extent) { return unclaim(extent).state() == ExtentState::kNone; }
  // Pins the extent, which is no kNone, at its own address, and says its slot. nullopt: it is none any more.
  std::optional<uint32_t> pin(uint64_t extent);
  void unpin(uint32_t slot);
  // Calls visit(extent) for those that are in slots, and in [first, last].
  template <class Visit>
  void for_each(uint64_t first, uint64_t last, Visit visit);

  // Since when it cannot be moved from its address; 0: it can, or has not been tried.
  uint64_t failing_since_ns(ExtentWord seen) {
    if (seen.state() != ExtentState::kPlaced && seen.state() != ExtentState::kMoving) return 0;
    return slots_[seen.slot()].failing_since_ns.load_relaxed();
  }

  // So many slots may have memory.
  void set_slots_max(uint32_t slots) { slots_max_.store_relaxed(slots); }

  // The mover's: the extent has been evicted. How many were missed since it asked last that would have been there, had
  // there been as many slots as there may be.
  void note_eviction(uint64_t extent) {
    evicted()[extent].store_relaxed(evictions_.fetch_add_relaxed(1) + 1);
  }
  uint32_t take_missed() { return missed_.exchange_relaxed(0); }
  // Whether any was missed since it asked last.
  bool take_has_missed() { return has_missed_.exchange_relaxed(false); }
  // A block of the extent, which is none, was missed.
  void note_miss(uint64_t extent);

  // Whether the kernel moves none.
  bool are_refused() const { return refusals_.load_relaxed() >= kRefusalsMax; }
  bool may_come() const;
  // Around a fork. From begin_fork() on none comes; while they are held, none leaves its address, nor its slot for the
  // store: the mover makes a word another one, and then looks whether they are held (leaves()); who holds them says so,
  // and then looks at the words. They come again some time after the fork: a longer one each time.
  void begin_fork() { may_come_at_ns_.store_release(UINT64_MAX); }
  void hold(bool are_held) {
    are_held_.store_relaxed(are_held);
    fence_seq_cst();
  }
  void end_fork();
  bool are_held() const { return are_held_.load_relaxed(); }
  // The mover's: changes the word to that state, in which its contents may leave. False: not now.
  bool leaves(uint64_t extent, ExtentWord seen, ExtentState to);

  // Asks the mover for an extent, or to settle one. Async-signal-safe.
  void wish(Wish wish);
  // It is not waited for any more.
  void unwish(uint64_t extent);
  // Of who has missed a block of an extent that is wished for: until the mover has said whether it will be one.
  void await_wish(uint64_t extent);
  void settle(uint64_t extent, Settle how);
  // The mover's: takes one; sleeps until somebody has asked for something since `heard`, or the time has passed.
  std::optional<Wish> take_wish();
  uint32_t heard() const { return bell_.load_acquire(); }
  void sleep(uint32_t heard, uint64_t timeout_ns);
  void ring();

 private:
  static constexpr uint32_t kWishesMax = 64;
  static constexpr uint64_t kWishNsMax = 10'000'000;
  static constexpr unsigned kLengthAt = 48;
  static constexpr int kRefusalsMax = 4;
  static constexpr uint64_t kAfterForkNsMin = 1'000'000'000, kAfterForkNsMax = 64'000'000'000;

  Extents(unsigned shift, ExtentMemory& memory)
      : shift_(shift), memory_(memory), slots_(std::make_unique<Slot[]>(memory.slots())) {}
  Atomic<uint32_t>* evicted() { return reinterpret_cast<Atomic<uint32_t>*>(evicted_.data()); }
  AtomicExtentWord* words() { return reinterpret_cast<AtomicExtentWord*>(table_.data()); }
  // Never 0.
  static uint64_t packed(Wish wish) {
    return (wish.extent + 1) | uint64_t{std::min(wish.length, 1000u)} << kLengthAt;
  }
  static Wish wish_of(uint64_t packed) {
    return {(packed & ((uint64_t{1} << kLengthAt) - 1)) - 1, static_cast<uint32_t>(packed >> kLengthAt)};
  }
  // A stream's extents that are read ahead are at most a quarter of the slots.
  uint32_t ahead_max() const { return std::clamp(slots_max_.load_relaxed() / 4, 1u, kAheadMax); }
  // One that was pinned for the first time: those that follow it will be needed.
  void wish_ahead(uint64_t extent, Slot& slot);

  const unsigned shift_;
  ExtentMemory& memory_;
  uint64_t count_ = 0;
  platform::Mapping table_;
  platform::Mapping evicted_;  // when each was evicted last, as evictions_ had it; 0: long ago
  Atomic<uint32_t> evictions_{0}, missed_{0}, slots_max_{0};
  Atomic<bool> has_missed_{false};
  std::unique_ptr<Slot[]> slots_;
  Atomic<uint64_t> wishes_[kWishesMax];  // extent + 1, length
  Atomic<uint32_t> next_wish_{0};
  Atomic<uint32_t> bell_{0};
  // Of moves to an address, until one is made. After kRefusalsMax there are no extents any more: the kernel is too old.
  Atomic<int> refusals_{0};
  Atomic<bool> are_held_{false};
  Atomic<uint64_t> may_come_at_ns_{0};
  uint64_t after_fork_ns_ = kAfterForkNsMin;
};

template <class Visit>
void Extents::for_each(uint64_t first, uint64_t last, Visit visit) {
  for (uint32_t i = 0; i < memory_.slots(); ++i)
    if (const uint64_t extent = slots_[i].extent.load_acquire(); extent - first <= last - first)
      visit(extent);
}

}  // namespace spw::cache
