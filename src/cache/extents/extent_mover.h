// The thread that reads extents ahead of streams, evicts them, and writes what has changed of them.
//
// One goes through its words' states as extent_word.h has them. Its memory is the block cache's otherwise: a slot that
// gets memory lowers the block cache's limit by as many frames, which it has to have given up before; how many slots
// there are follows what is used again (slot_demand.h).
// Who has to leave for another extent is the one that came first, nobody pins, and nobody uses any more. What uses it
// at its address is not seen, so it rests first: it is moved from its address into its slot, which takes two
// microseconds, and is evicted when the next one has to leave. Who comes for it before that has it back at once, and it
// is the last in the order then. Above the limit nobody is asked. When no stream has come for a while, and blocks are
// missed, those that are found unused leave one by one, and their slots' memory is the block cache's again.
// An extent that cannot be read leaves no error: whoever needs its blocks reads them by the block cache, which tells.
// One that cannot be written stays in its slot, and is written again a while later; when that has gone on for
// Options::write_wait_ns the error handler is told.
// Threads: run() is the thread's; the rest any. Limits: kReadsMax extents are read at a time, by kOpsMax requests.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "cache/cache.h"
#include "cache/extents/extents.h"
#include "cache/extents/slot_demand.h"
#include "store/checked/checksum.h"

namespace spw::cache {

class ExtentMover {
 public:
  static constexpr uint32_t kShare = 4;
  static constexpr uint32_t kSlotsMin = SlotDemand::kLeast;
  // Where somebody may be asking the block cache for a block of the extent who has not seen that it is claimed, takes
  // the claim back (extents.h).
  using Quiesce = std::function<void(uint64_t extent)>;
  struct Options {
    unsigned block_shift = 12;
    uint32_t share = kShare;    // of the frames extents have one in so many at most
    bool after_misses = false;  // for tests: a miss is followed by extents, be it of a stream or not
    uint64_t write_wait_ns = 30'000'000'000;
    IoErrorHandler on_error = nullptr;
    void* error_context = nullptr;
  };
  ExtentMover(const Options& options, Extents& extents, SharedCache& blocks, BlockSource& source,
              Quiesce quiesce);

  void run(Client& client);
  void stop() { stopping_.store_release(true); }
  // Of the whole cache's frames; as many slots as that leaves may have memory.
  void set_limit(uint32_t frames);
  // The store is about to go, and no extent has anything there: back as soon as the mover has no queue open on it.
  void close_store(store::Store& store);
  uint32_t slots_with_memory() const { return with_memory_.load_relaxed(); }
  uint32_t slots_peak() const { return peak_.load_relaxed(); }
  uint64_t metadata_bytes() const { return peak_.load_relaxed() * kPages * sizeof(uint64_t); }
  bool is_above_limit() const { return with_memory_.load_relaxed() > slots_max_.load_relaxed(); }

  // Of so many frames; with fewer than kSlotsMin there are none.
  static uint32_t slots_for(uint32_t frames, unsigned block_shift, uint32_t share);

 private:
  static constexpr size_t kReadsMax = 4, kOpsMax = 64;
  static constexpr size_t kWishesMax = 16;
  static constexpr uint64_t kPieceBytes = 256 * kKiB;
  static constexpr uint32_t kPages = kExtentBytes / store::kSummedBytes;
  static constexpr int kTriesMax = 8;

  struct Op {
    store::Request request;
    uint32_t slot = 0;
  };
  // The mover's own of a slot.
  struct Held {
    std::unique_ptr<uint64_t[]> sums;  // of its pages, as the store has them
    std::vector<uint32_t> changed;     // blocks that are being written
    uint32_t under_way = 0;            // requests
    int error = 0;
    store::Store* store = nullptr;  // that it is being written to
    bool has_memory = false;
    bool is_in_use = false;  // somebody came for it while it rested
    uint64_t failing_since_ns = 0, retry_at_ns = 0;
  };

  enum class Evict : uint8_t { kRested, kAny };
  enum class Came : uint8_t { kNo, kYes, kNotYet };
  struct Pending {
    Extents::Wish wish;
    int tries = 0;
    uint64_t not_before_ns = 0;
  };

  bool take_wishes();
  Came begin_read(Extents::Wish wish);
  void begin_reads(uint32_t slot, const Backing& at);
  bool claim(uint64_t extent, uint32_t slot, Backing* at);
  bool may_become(uint64_t extent, Backing* at);
  bool has_free_slot() const;
  std::optional<uint32_t> take_slot();
  void grant(uint32_t slots);
  void leave_rest();
  void get_memory(uint32_t slot);
  void end_read(uint32_t slot);
  template <class Which>
  bool take_out_first(const std::deque<uint32_t>& of, Which which);
  bool settle_one();
  bool evict_one(Evict which);
  void let_idle_leave();
  void find_in_use();
  void let_first_rest();
  void leave_orders(uint32_t slot);
  bool bring_back(uint32_t slot, ExtentWord seen, ExtentState then);
  uint32_t slots_wanted() const {
    return extents_.are_refused() ? 0 : std::min(demand_.slots(), slots_max_.load_relaxed());
  }
  bool take_out(uint32_t slot);
  bool has_changed(uint32_t slot, uint32_t page, BlockId block);
  void begin_write(uint32_t slot);
  void end_write(uint32_t slot);
  void write_pages(uint32_t slot, uint32_t first, uint32_t count, const Backing& at);
  void free_slot(uint32_t slot);
  bool shrink();
  bool reap();
  void close_queue();
  bool open_queue(store::Store& store);
  bool turn_to(store::Store& store);
  Op& take_op();
  void submit(store::Op what, uint32_t slot, uint64_t from, uint64_t bytes, uint64_t offset_bytes);
  AtomicExtentWord& word_of(uint32_t slot) {
    return extents_.word(extents_.slot(slot).extent.load_relaxed());
  }
  uint32_t pages_a_block() const { return uint32_t{1} << (options_.block_shift - 12); }

  const Options options_;
  Extents& extents_;
  SharedCache& blocks_;
  BlockSource& source_;
  const Quiesce quiesce_;
  const store::Checksum checksum_;
  store::ChecksumSecret secret_;
  Client* client_ = nullptr;
  store::Store* store_ = nullptr;
  std::unique_ptr<store::IoQueue> queue_;
  std::vector<Held> held_;
  std::vector<uint32_t> free_;     // slots
  std::deque<uint32_t> order_;     // slots of extents, as they came or were found in use
  std::deque<uint32_t> resting_;   // of those that are asked whether somebody uses them; they are in no other
  std::vector<uint32_t> writing_;  // of those that have been taken out, and are not written yet; the same
  SlotDemand demand_;
  std::array<Op, kOpsMax> ops_;
  std::vector<Op*> idle_ops_;
  std::deque<Pending> wishes_;
  size_t reads_ = 0;
  uint64_t came_at_ns_ = 0, look_at_ns_ = 0;  // the last extent; for idle ones, at the earliest
  uint64_t memory_at_ns_ = 0,
           memory_wait_ns_ = 0;  // no slot gets any before; since the last one that got some
  std::mutex limit_mutex_;
  uint32_t limit_ = 0;    // under limit_mutex_
  uint32_t granted_ = 0;  // slots that may have memory; the same
  Atomic<uint32_t> slots_max_{0}, with_memory_{0}, peak_{0};
  std::mutex closing_mutex_;
  Atomic<store::Store*> closing_{nullptr};  // set under closing_mutex_, taken back by the mover
  Atomic<bool> stopping_{false};
};

}  // namespace spw::cache
