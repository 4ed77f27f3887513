// The shared cache behind cache.h: what clients do by themselves
// (shared_cache.cc: pins; pinned_runs.cc: of neighbours; reading_ahead.cc; range_flow.cc: ranges), and the parts it
// puts together.
//
// A pin, in steps:
//   1. pin probes the block table and counts a reference by one CAS. Done, if that succeeds.
//   2. join_present: the block is there but was read ahead and never used, or is being filled: the same CAS, by hand.
//      With page sets, the client then takes a frame by itself, where it is plain that it can (take_in_set), and goes
//      on at 4. Before either, once, a miss may bring neighbours along: all of them, the block too, are read ahead by
//      one request, which it waits for (range_flow.cc: fault_around).
//   3. Otherwise the partition's owner is asked (delegation/). It finds the block after all, or takes a frame for it.
//   4. With a frame in hand the client fills it itself: zeros, or one
//       read by Store::transfer (dedicated: the owner does).
//   5. It ends the fill in the pin word, which lets everybody else in, and wakes who sleeps there.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/atomic.h"
#include "cache/cache.h"
#include "cache/client.h"
#include "cache/delegation/delegation.h"
#include "cache/fault_around.h"
#include "cache/fills.h"
#include "cache/partition/partition.h"

namespace spw::cache {

// A pin that is no plain hit, on its way: what was asked for, and what is known of the block by now.
//
// The table is probed for it once by the client (join_present; pin()'s own probe is for plain hits, and remembering in
// it what else it saw would cost each of those) and once by the owner, whose lookup is exact: a client's may miss what
// is there, and others may bring the block in between the two. Again only when something has changed: after a wait, and
// after the block was asked for together with its neighbours.
// Where its contents are is looked up once it has a frame (fill), from when on nobody else writes or frees it. What was
// known before would not do: it may have been brought in, changed, written and evicted since, or its range been freed.
// So who has to know earlier, what to bring along or whether a read can begin, has a hint (hint()). An owner that has
// looked hands on what it saw (Request::backing): nothing comes between that and the frame it took.
struct Miss {
  Miss(Client& asking, BlockId of, Access wanted, Partition& owned_by, Pin* to)
      : client(asking),
        block(of),
        access(wanted),
        expects_store(asking.expects_store),
        partition(owned_by),
        out(to) {}

  Client& client;
  const BlockId block;
  const Access access;
  const bool expects_store;  // after it
  Partition& partition;
  Pin* const out;               // out->frame: where the block seems to be, then the frame it has
  Status status;                // of Step::kError
  std::optional<Backing> hint;  // where the contents were before it had a frame
  uint64_t asked_ns = 0;        // when it turned out to be one; 0: not yet
  bool was_read = false;        // from the store
  bool is_summed = false;       // it is a load's, and comes dirty all the same (writeback/fill_sums.h)
  bool has_waited = false;      // somebody else was bringing the block in
  bool is_waiting = false;      // as fault_around_ knows
  bool is_other_half = false;   // it is no news of a stream (FaultAround::Unit)
  uint64_t deadline_ns = 0;     // of the wait for a frame; 0: it has not begun
  Status write_error;  // the latest meanwhile: on a full store writes of blocks that have their place succeed

  Resident resident() const { return {out->frame, block}; }
  bool is_for_write() const { return access != Access::kRead; }
  // What is read ahead on its account comes with stores, or not.
  Access access_ahead() const { return expects_store ? Access::kWrite : access; }
  uint64_t dirty_flags() const {
    return is_summed ? PinWord::kDirty | PinWord::kSummed : is_for_write() ? PinWord::kDirty : 0;
  }
};

// While it lives, the client's requests are made only where no owner has to be waited for.
class WaitsForNobody {
 public:
  explicit WaitsForNobody(Client& client) : client_(client) { client_.may_wait = false; }
  ~WaitsForNobody() { client_.may_wait = true; }
  WaitsForNobody(const WaitsForNobody&) = delete;
  WaitsForNobody& operator=(const WaitsForNobody&) = delete;

 private:
  Client& client_;
};

class SharedCacheParts final : public SharedCache {
 public:
  SharedCacheParts(const Options& options, Directory directory, std::unique_ptr<FrameSource> frames,
                   BlockSource& blocks, IoErrorHandler on_error, void* error_context);
  ~SharedCacheParts() override;
  // Second step of construction. A policy for each partition; nullptr: its frames are page sets.
  Status open_partitions(std::vector<std::unique_ptr<Policy>> policies);

  Result<Client*> open_client(Uses uses) override;
  void close_client(Client* client) override;
  Status pin(Client& client, BlockId block, Access access, Pin* out) override;
  Fills* open_fills() override;
  Begun begin_pin(Client& client, Fills& fills, BlockId block, Access access, uint64_t tag, Pin* out,
                  Status* status) override;
  size_t room_for_fills(const Fills& fills) const override;
  Begun try_pin(Client& client, BlockId block, Access access, Pin* out, Status* status) override;
  void start_fills(Fills& fills) override;
  size_t end_pins(Client& client, Fills& fills, std::span<EndedPin> out) override;
  uint64_t sleep_of_fills(Fills& fills, std::vector<int>* fds) override;
  Status pin_quietly(Client& client, BlockId block, Access access, Pin* out) override;
  Status pin_loose(Client& client, BlockId block, Access access, Pin* out) override;
  Status pin_expecting(Client& client, BlockId block, Pin* out) override;
  bool place(FrameId frame) override;
  uint64_t references(FrameId frame) const override { return directory_.word(frame).load_relaxed().refs(); }
  void unpin(Client& client, FrameId frame) override;
  void mark_dirty(Client& client, FrameId frame) override;
  uint32_t pin_run(Client& client, BlockId first, uint32_t count, Access access, Pin* out) override;
  void miss_run(Client& client, BlockId first, uint32_t blocks) override;
  void pin_is_near(BlockId block) const override { directory_.prefetch_slot(block); }
  void pin_is_next(BlockId block) const override { directory_.prefetch_word(block); }
  void unpin_is_near(FrameId frame) const override { directory_.prefetch_word(frame); }
  void prefetch(Client& client, BlockId first, uint64_t count) override;
  void prefetch_at_once(Client& client, BlockId first, uint64_t count) override;
  bool is_resident(BlockId block) const override;
  void dirty_resident(BlockId first, uint64_t count) override;
  bool pin_present(Client& client, BlockId block, Access access, Pin* out) override;
  void bring_in_zeros(Client& client, BlockId block) override;
  void adopt(Client& client, BlockId first, uint64_t count) override;
  void discard(Client& client, BlockId first, uint64_t count) override;
  bool take_out(Client& client, BlockId first, uint64_t count) override;
  void set_frame_limit(uint32_t frames) override;
  void note_passed(uint64_t blocks) override;
  uint32_t frame_limit() const override;
  bool make_room(Client& client, unsigned low_percent, unsigned high_percent) override;
  Status evict_to_limit(Client& client) override;
  Status flush(Client& client, BlockId first, uint64_t count) override;
  void begin_flush(Client& client, const std::function<BlockRun()>& next, Flushing* flushing) override;
  Status end_flush(Client& client, Flushing* flushing) override;
  bool try_end_flush(Client& client, Flushing* flushing, Status* status) override;
  void await_writes(Client& client, BlockId first, uint64_t count) override;
  bool holds(Resident resident) const override {
    return directory_.word(resident.frame).load_acquire().holds(resident.block);
  }
  void for_each_unwritten(const std::function<void(Resident)>& visit) const override;
  bool is_dirty(BlockId block) const override;
  bool holds_dirty(Resident resident) const override {
    const PinWord word = directory_.word(resident.frame).load_acquire();
    // Where clients take frames by themselves (page sets), it may have left this one since it was written.
    return word.holds(resident.block) ? word.dirty() : is_dirty(resident.block);
  }
  Status sync(Client& client, BlockId first, uint64_t count) override;
  void close_store(Client& client, store::Store& store) override;
  PartitionMap partition_map() const override { return directory_.map(); }
  const platform::File* frames_file() const override { return frames_->file(); }
  uint64_t memory_file_bytes() const override { return frames_->memory_file_bytes(); }
  uint32_t frames_per_partition() const override { return directory_.shares().of_smallest(); }
  uint32_t frame_count() const override { return directory_.shares().frame_count(); }
  uint32_t free_frames() const override;
  uint32_t occupied_frames() const override;
  bool has_free_frames(PartitionId partition) const override {
    return partitions_[partition.value]->organisation().free_frames() > 0;
  }
  uint32_t peak_frames() const override;
  uint64_t metadata_bytes() const override;
  void check_invariants() override;

 private:
  // How a step of a pin came out; kAgain: from the start.
  enum class Step : uint8_t { kPinned, kError, kAgain };
  Status pin_slowly(Client& client, BlockId block, Access access, Pin* out);
  Partition& partition_of(BlockId block) { return *partitions_[directory_.partition_of(block).value]; }
  // shared_cache.cc
  template <class Otherwise>
  Step take_present(Miss& miss, Otherwise otherwise);
  Step join_present(Miss& miss);
  Step take_in_set(Miss& miss);
  Step ask_owner(Miss& miss);
  Step await_filled(Miss& miss);
  // As pin(), with that of the client set.
  Status pin_as(bool Client::* what, Client& client, BlockId block, Access access, Pin* out);
  Step fill(Miss& miss, const Backing& backing);
  Status transfer_in(Miss& miss, const Backing& backing);
  void note_missed(const Miss& miss);
  Step end_fill(Client& client, Resident resident, uint64_t dirty_flags, const store::Store* store,
                const Status& status);
  bool pin_resident(Miss& miss, PinWord* word);
  bool note_answered(Miss& miss);
  void note_pinned(PinWord before, BlockId block, Access access, Pin* out);
  void note_dirtied(Resident resident);
  void note_miss(Miss& miss, bool is_read);
  void note_ahead_used(const Miss& miss);
  void leave_failed(Client& client, FrameId frame, Partition& partition);
  const Backing& hint(Miss& miss);
  Backing backing_of(const Request& answered) const;
  bool ask(Client& client, Partition& partition);
  void unpin_and_tell(Client& client, FrameId frame);
  void place_on_nodes();
  // begun_pins.cc
  Begun pin_or_begin(Client& client, Fills* fills, BlockId block, Access access, uint64_t tag, Pin* out,
                     Status* status);
  Step begin_present(Miss& miss);
  Step begin_parked(Miss& miss);
  bool begin_unit(Miss& miss);
  Begun begin_miss(Miss& miss, Fills* fills, uint64_t tag);
  Begun begin_fill(Miss& miss, Fills* fills, uint64_t tag, const Backing& backing);
  void give_up_fill(Client& client, Resident resident);
  void leave_filling(Client& client, FrameId frame, Partition& partition);
  // pinned_runs.cc
  uint32_t pin_there(Client& client, BlockId first, uint32_t count, Access access, Pin* out);
  uint32_t claim(Client& client, BlockId first, uint32_t count, FrameId* frames);
  void end_filling(Resident resident, uint64_t flags);
  bool is_new(BlockId block);
  uint32_t new_run(BlockId block);
  Step bring_zeros(Miss& miss);
  uint32_t claim_run(Client& client, BlockId first, uint32_t count, Pin* out);
  // waits.cc
  void wait_while_filling(Client& client, FrameId frame, Partition& partition);
  bool await_progress(Partition& partition, const Request& request, uint64_t deadline_ns);
  Status wait_for_frame(Client& client, Partition& partition, uint64_t* deadline_ns, Status* write_error);
  void tell(const Client& client, const Status& status);
  // reading_ahead.cc
  void read_ahead(Client& client, ReadPlan plan, Access access);
  ReadPlan within_reach(Client& client, ReadPlan plan) const;
  uint32_t read_ahead_whole(Client& client, ReadPlan plan, Access access);
  void end_ahead(const ReadPlan& plan);
  // range_flow.cc
  bool hold_clean(BlockId block, FrameId* frame);
  FaultAround::Unit unit_to_bring(Miss& miss);
  void bring_unit(Client& client, FaultAround::Unit unit, Access access);
  void note_unit_missed(Miss& miss, FaultAround::Unit unit);
  FaultAround::Unit absent_part(FaultAround::Unit unit, const Miss& miss);
  Step fault_around(Miss& miss);
  void zeros_ahead(Client& client, BlockId block);
  Status run_to_end(Client& client, Partition& partition, Wish wish, BlockId first, uint64_t count);
  Status serve_to_end(Client& client, Partition& partition, BlockId first, uint64_t count);
  std::vector<store::Store*> stores_of(BlockId first, uint64_t count);
  template <class Visit>
  void for_each_piece(BlockId first, uint64_t count, Visit visit);
  template <class Visit>
  void for_each_group_piece(BlockId first, uint64_t count, Visit visit);

  Directory directory_;
  bool wants_touches_ = false;  // the policy does; read at the end of every use, so beside the table
  std::unique_ptr<FrameSource> frames_;
  BlockSource& blocks_;
  std::unique_ptr<FaultAround> fault_around_;  // if fills are tuned
  const IoErrorHandler on_error_;
  void* const error_context_;
  FillErrors errors_;
  StoreSet written_stores_;
  FillSums fill_sums_;
  PartitionContext context_;
  std::unique_ptr<Delegate> delegate_;
  std::vector<std::unique_ptr<Partition>> partitions_;
  std::mutex clients_mutex_;
  std::vector<std::unique_ptr<Client>> clients_;
  Atomic<uint64_t> fills_bytes_{0};  // the memory that these have
  Atomic<uint64_t> passed_{0};  // note_passed(): so many in all; a partition's share may be less than one
  std::vector<std::unique_ptr<Fills>> fills_;  // under clients_mutex_
};

// The block is in the table, though it was no plain hit: pinned where it is resident by now. Where it is not,
// `otherwise(pin_word, word)` says what comes of it, or nothing: the word has changed, and is now `word`.
// kAgain, with kNoFrame in out->frame: it is not there.
template <class Otherwise>
SharedCacheParts::Step SharedCacheParts::take_present(Miss& miss, Otherwise otherwise) {
  miss.out->frame = directory_.find(miss.block);
  if (miss.out->frame == kNoFrame) return Step::kAgain;
  AtomicPinWord& pin_word = directory_.word(miss.out->frame);
  PinWord word = pin_word.load_acquire();
  while (word.holds(miss.block)) {
    if (pin_resident(miss, &word)) return Step::kPinned;
    if (!word.holds(miss.block)) break;
    if (std::optional<Step> step = otherwise(pin_word, word)) return *step;
  }
  miss.out->frame = kNoFrame;
  return Step::kAgain;
}

}  // namespace spw::cache
