// Several stores as one to spill to, each used as much as it is fast and has room: "A,B,..." or
// "striped:[chunk=SIZE,]A,B,..." where it is for what is spilled (open_store.h).
//
// The members may be in *tiers*: "DIR,rbd:POOL" fills the first one's members and then goes on to the next one's, and
// chunks that are used often move up (balanced/chunk_mover.h). Where a list goes from this machine to the network or
// back, the next tier begins (open_store.h).
//
// A chunk is *assigned* to a member, and gets a *slot* there, when it is first reserved or written; until then it reads
// as zeros without a request. Which member that is follows from how fast they answer (balanced/shares.h). A member
// without room for a chunk (ENOSPC, EDQUOT, or no slot left) is left out while another one has some, so the size is the
// sum of the members' sizes. A chunk that is discarded whole gives its slot back; of one of which only a part is, the
// member gives the space back. Within its tier what was assigned stays where it is, however slow its member becomes,
// unless that fails to write it.
//
// Everything is known to this object alone, so a store of this kind is for what dies with the process; stripes that
// persist have a fixed order (striped_store.h). A forked child that goes on has a copy of it, as of all memory. It need
// not be shared: while both use the same members, neither writes to them (region/spill_layers.h), but for requests that
// the parent had under way; where those went the child does not know, so it empties each slot that it takes later.
//
// Queues: where those of all members can be slept at, as files' can, each queue of this store has its own of every
// member (striped/direct_parts.h); else each member has a thread for all queues (striped/stripe_member.h), which also
// does the parts of a transfer() that has several.
//
// Invariants: a slot is taken => one chunk has it, or a request is emptying it, or a take of it failed
//   a free slot reads as zeros, or counts as unclean (slots.h). But a slot of a device or a server that was never used
//     has what was there before; who asks has to know what it has written, as on such a store itself
//   a request that moves data has its chunks pinned (balanced/chunk_table.h) until its last part has ended
// Threads, lifetime: as every store. assign() is under the places' mutex, with the member's reservation and, for an
//   unclean slot, its discard; only who has to have a chunk assigned, and a fork, wait for that. Nobody waits for a
//   member's thread under it.
// Errors: a request fails with that of a member that failed; describe_at() names that one. A chunk's first write that
//   fails goes to another member that has room; a later one fails, and the chunk is moved to another member meanwhile,
//   if it can be read. ENOSPC: no member has room for a new chunk, or an old one's has none for what had been given
//   back of it. Or all slots are taken for the moment, while freed ones are being emptied. Callers try again
//   (src/cache/writeback).
// Limits: 2 to kStripedMembersMax members of a chunk each; chunk_bytes in [kMmuPageBytes, kGiB];
//   kBalancedBytesMax bytes in all.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "store/balanced/chunk_mover.h"
#include "store/balanced/chunk_table.h"
#include "store/balanced/places.h"
#include "store/engine/progress.h"
#include "store/store.h"
#include "store/striped/parted.h"

namespace spw::store {

inline constexpr uint64_t kBalancedBytesMax = uint64_t{16} << 40;

class BalancedStore final : public Store, private PartedStore {
 public:
  // `faults`: may be nullptr; outlives the store. `tiers`: of each member, from 0 on and never going down; empty: all
  // are of one. Errors: EINVAL with a sentence.
  static Result<std::unique_ptr<BalancedStore>> create(std::vector<std::unique_ptr<Store>> members,
                                                       uint64_t chunk_bytes, FaultPlan* faults = nullptr,
                                                       const std::vector<uint32_t>& tiers = {});
  ~BalancedStore() override;

  // And what share of the chunks each member has got so far, once there are any.
  std::string describe() const override;
  std::string describe_at(uint64_t offset_bytes) const override;
  uint64_t size_bytes() const override { return target_.size_bytes; }
  uint64_t alignment_bytes() const override { return target_.alignment_bytes; }
  Result<std::unique_ptr<IoQueue>> open_queue(size_t depth) override;
  Status transfer(Request& request) override;
  Status reserve(uint64_t offset_bytes, uint64_t bytes) override;
  void lock_for_fork() override;
  void unlock_after_fork() override;
  void in_child() override;

  // Chunks that a member has now.
  uint64_t chunks_of(size_t member) const { return places_[member].slots.taken(); }
  double slowness(size_t member) const { return places_.shares().slowness(member); }
  // Chunks that have moved, ever, and those of them that have to a higher tier.
  uint64_t moved() const { return mover_.moved(); }
  uint64_t moved_up() const { return mover_.moved_up(); }

 private:
  // Of a chunk: [from, from + bytes) of it.
  struct Piece {
    uint64_t chunk = 0;
    uint64_t from = 0;
    uint64_t bytes = 0;
  };
  class Dealer;

  BalancedStore(size_t members, uint64_t chunk_bytes)
      : chunk_bytes_(chunk_bytes), places_(members, chunk_bytes), mover_(places_, table_) {}
  Status set_up(std::vector<std::unique_ptr<Store>> members, const std::vector<uint32_t>& tiers);
  template <class Visit>
  int for_each_piece(uint64_t offset_bytes, uint64_t bytes, Visit visit) const;
  uint64_t offset_of(ChunkWord word, uint64_t from) const { return word.slot() * chunk_bytes_ + from; }

  // The chunk assigned, and pinned; or ENOSPC, or what the last member that was asked said.
  Result<ChunkWord> pin_to_write(const Piece& piece);
  // Under the places' mutex.
  Result<ChunkWord> assign(const Piece& piece, uint64_t users);

  int deal(PartedStep& step, Parts& parts) override;
  int deal_discard(PartedStep& step, Parts& parts, uint64_t end);
  void begin_part(StripePart& part) override;
  void submit(std::unique_ptr<StripePart> part) override;
  int transfer_part(StripePart& part) override;
  int end_part(StripePart& part, int error) override;
  int end_step(PartedStep& step, int error) override;
  bool write_elsewhere(uint64_t chunk);

  const uint64_t chunk_bytes_;
  Target target_;
  ChunkTable table_;
  Places places_;
  ChunkMover mover_;  // last: its thread uses the others
};

}  // namespace spw::store
