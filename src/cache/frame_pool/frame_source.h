// Where a partition's memory comes from. The translated engine reads and writes frames of a pool (pool_frames.h). In
// the mapped engine blocks of memory are *in place*, at their own addresses, where a fill is installed and a victim
// released; blocks that are reached by calls alone are pooled (access/mapped/mapped_frames.h).
//
// Life of a frame: [fill_address -> (contents arrive there)] -> install -> pinned data at placement() ->
//   [begin_writeback -> end_writeback]* -> release. fill_address only when contents are read from a store; a fill that
//   fails ends in release without an install.
// Staging: a source whose frames cannot be read into in place, or not as fast, hands
//   out buffers; contents are read into one and installed from there. A client that
//   fills owns one for a block, an asynchronous read one for a run of blocks.
// Threads: fill_address and install are called by the one thread that fills the frames, take_staging and give_back by
//   any; the others by the owner of the frame's partition. Different frames: at the same time.
// Ordering: the caller orders install before every pin (pin word: end_filling release / try_pin acquire), the last
//   unpin before release, and release before the frame's next fill.
// Limits: memory handed out is block_bytes long and block_bytes aligned
//   (staging: page aligned); never more than frame_count blocks in all.
#pragma once

#include <cstddef>
#include <span>

#include "base/atomic.h"
#include "base/ids.h"
#include "platform/file.h"

namespace spw::cache {

// How install() is to make the contents.
enum class Contents : uint8_t {
  kFilled,     // they are at fill_address
  kZeros,      // none yet: all zeros
  kArbitrary,  // the client overwrites all of them
  kInPlace,    // they are at the block's own address already
};

struct Resident {
  FrameId frame;
  BlockId block;
};

class FrameSource {
 public:
  // Where pinned data is. Blocks before `in_place_end` have an address of their own, in_place + (block << block_shift),
  // and are *placed* there or *loose*, in the pool as all others: at pool + (frame << block_shift) or, where frames
  // have places, pool + (places[frame] << block_shift). Without places all blocks that have an address are placed.
  struct Placement {
    static constexpr uint32_t kNoPlace = UINT32_MAX;
    static constexpr uint32_t kPlaced = UINT32_MAX - 1;

    std::byte* in_place = nullptr;
    uint64_t in_place_end = 0;
    std::byte* pool = nullptr;
    const Atomic<uint32_t>* places = nullptr;

    bool has_address(BlockId block) const { return block.value < in_place_end; }
    // By who holds the frame, in whatever way: it is not filled, placed or released meanwhile.
    bool is_placed(Resident resident) const {
      return has_address(resident.block) && (places == nullptr || place_of(resident.frame) >= kPlaced);
    }
    // is_placed() or data() of a block in the frame comes soon.
    void prefetch(FrameId frame) const {
      if (places) __builtin_prefetch(&places[frame.value]);
    }
    // Looks once: a lifted block may be put back meanwhile, and what it had then stays until its write has ended.
    std::byte* data(Resident resident, unsigned block_shift) const {
      const uint64_t place = place_of(resident.frame);
      if (has_address(resident.block) && (places == nullptr || place >= kPlaced))
        return in_place + (resident.block.value << block_shift);
      return pool + (place << block_shift);
    }

   private:
    uint32_t place_of(FrameId frame) const {
      return places ? places[frame.value].load_relaxed() : frame.value;
    }
  };
  // kBlock: for a thread's own fills, kRun: for an asynchronous read of neighbours, kPiece: for one of a single block.
  enum class Staging : uint8_t { kBlock, kRun, kPiece };

  virtual ~FrameSource() = default;
  virtual Placement placement() const = 0;

  // Whether a read of so many neighbours goes through staging; kWanted: where there is some.
  enum class StagingUse : uint8_t { kNone, kWanted, kNeeded };
  virtual StagingUse staging_use(BlockId, uint64_t /*count*/) const { return StagingUse::kNone; }
  // A buffer of it; nullptr: all are in use. kBlock ones are never all in use.
  virtual std::byte* take_staging(Staging) { return nullptr; }
  virtual void give_back(Staging, std::byte*) {}

  // Whether a store that reads the memory of the block itself would have the kernel copy it first, since a fork left it
  // in common with another process. It is written from staging then, where there is some.
  virtual bool is_written_from_staging(BlockId) const { return false; }

  // A run of blocks at their own addresses comes along with one that is stored to. Whether most of them will be, too:
  // then they are installed writable, as dirty, which saves that their first stores are noticed.
  virtual bool comes_stored_to(BlockId /*first*/) { return false; }
  // One that came along so, but protected: its first store, if any, tells how often comes_stored_to should say so.
  virtual void watch_for_store(Resident) {}
  // A loose block, which nobody else uses and which is not being written, to its own address; as install().
  virtual void place(Resident, bool /*writable*/) {}

  // Where the contents of run[index] go; `staging`: what the filler holds for it, or nullptr.
  virtual std::byte* fill_address(Resident resident, std::byte* staging, size_t index) = 0;
  // Neighbouring blocks, in order; `staging`: where the first one's contents are in it, or nullptr. `writable`: they
  // count as dirty from now on; else a store to them has to be noticed.
  virtual void install(std::span<const Resident> run, Contents contents, const std::byte* staging,
                       bool writable) = 0;
  // Whether the program has left the right to read to all of a block that is being written. What it has not is written
  // from staging by copy_out(), or, where there is none, let_read(): until end_writeback() it can be read.
  virtual bool is_readable(BlockId) const { return true; }
  virtual void copy_out(Resident, std::byte* /*to*/) {}
  virtual void let_read(std::span<const Resident> /*run*/) {}
  // Before the writeback reads them: neighbouring blocks, in order. Until end_writeback, clients' stores may go on, but
  // each block that is stored to after begin_writeback is marked dirty again by whoever stores.
  virtual void begin_writeback(std::span<const Resident> run) = 0;
  virtual void end_writeback(Resident resident) = 0;
  // Blocks like this one may be lifted, many of them together for less than begin_writeback() of each.
  virtual bool lifts(BlockId) const { return false; }
  // At most kLiftedMax, in any order; nobody holds them, and none is all zero. All have left their addresses, with what
  // they held at one moment, for memory of their own, where data() finds them; an access faults from now on. False:
  // they are where they were.
  static constexpr size_t kLiftedMax = 64;
  virtual bool lift(std::span<const Resident>) { return false; }
  // A lifted block comes back to its address, where stores are noticed; its memory stays until forget_lifted().
  virtual void put_back(Resident) {}
  virtual void forget_lifted(std::byte* /*memory*/) {}
  // The victims' contents are not needed any more; their words are free already.
  virtual void release(std::span<const Resident> victims) = 0;
  // Victims that are best released in one call.
  virtual size_t release_batch_max() const = 0;

  // So many frames may be in use from now on.
  virtual void set_limit(uint32_t /*frames*/) {}

  // Neighbouring blocks, in order, that clients hold and that were clean are dirty now: they may be stored to.
  virtual void allow_stores(std::span<const Resident> /*run*/) {}
  // The policy took the block's referenced bit away: its next use has to be noticed. Only if notes_uses().
  virtual void watch_for_use(Resident) {}
  virtual bool notes_uses() const { return false; }

  // The memory file behind the frames, where frame f stands at f << block_shift; nullptr: there is none.
  virtual const platform::File* file() const { return nullptr; }
  // Of memory files behind the frames, so much has memory.
  virtual uint64_t memory_file_bytes() const { return 0; }
};

}  // namespace spw::cache
