// The shared cache: blocks of the managed space in frames, shared by all threads of the process.
//
// This header is what the layers above see. README.md says what stands behind it, and where.
//
// Invariants (between operations of a quiet cache):
//   resident blocks + free frames + frames in transit = frame count
//   a block is resident in at most one frame; a frame holds at most one block
//   refs(frame) = pins not yet unpinned; refs > 0 => the frame is neither evicted nor reused
//   a frame is dirty => a client pinned it for write since its last writeback began, or it came so: zeros, what was
//     adopted, and what will be stored to most likely (FrameSource::comes_stored_to, dirty_resident)
//   a dirty bit is cleared by the owner alone, and only while refs = 0
// Threads: a Client belongs to one thread at a time; everything else may be called from any thread.
// Lifetime: clients are closed before the cache is destroyed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "cache/frame_pool/frame_source.h"
#include "cache/partition_map.h"
#include "platform/file.h"
#include "store/store.h"

namespace spw::cache {

// Where the contents of a block are when it is not resident.
struct Backing {
  store::Store* store = nullptr;  // nullptr: the block belongs to no region (a bug, or a use after free)
  uint64_t offset_bytes = 0;
  bool has_contents = false;  // false: never written; reads as zeros, no I/O
};

// region/ implements this for the cache. Called by owners and by demand fills, from any thread; must not
// block on the cache.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  // Where to read `block` from.
  virtual Backing locate_for_fill(BlockId block) = 0;
  // Where to write `block` to (differs for private file mappings). Reserves the space.
  virtual Backing locate_for_writeback(BlockId block) = 0;
  // Where somebody chose what comes along with `block`, a unit of fault-around
  // or by advice: how many blocks, a power of two. 0: nobody did.
  virtual uint64_t fault_around_blocks(BlockId) { return 0; }
  // Stores to the block come by calls, most of which overwrite blocks
  // whole: once it is gone, the next one seldom has to read it.
  virtual bool is_buffered_file(BlockId) { return false; }
  // It is no file's: its store may get it though nobody has stored to it, and has the space already if it has
  // contents.
  virtual bool is_anonymous(BlockId) { return false; }
  // A file's that the program has mapped shared: its store gets what was stored to the block, and nothing else.
  virtual bool is_shared_file(BlockId) { return false; }
  // The contents of `block` have reached the place locate_for_writeback gave, on the store `to`.
  virtual void written_back(BlockId block, const store::Store* to) = 0;
  // Blocks of a group that nobody asked for are about to be there, dirty.
  virtual void dirtied(BlockId /*first*/, uint64_t /*count*/) {}
  // Blocks of a group that were dirty have been written, or need not
  // be, and are clean unless somebody has made them dirty since. They
  // are in these frames unless a client has evicted them since: SharedCache::holds_dirty().
  virtual void cleaned(BlockId /*first*/, std::span<const FrameId> /*frames*/) {}
};

enum class Access : uint8_t {
  kRead,
  kWrite,      // marks the block dirty
  kOverwrite,  // marks it dirty; the caller overwrites all of it before it reads any, so it need not be
               // filled
};

struct Pin {
  std::byte* data = nullptr;  // the block's first byte
  bool was_clean = false;     // kWrite: this pin made the block dirty, which had been clean
  bool was_miss = false;      // it was not cached
  bool was_filled = false;    // and this pin filled it, by itself: who waits for it knows
  FrameId frame = kNoFrame;
  bool is_extent = false;  // it is at its own address, and stores to it need not be noticed (cache/extents/)
};

// Fills that one thread has in flight (cache/fills.h).
class Fills;

// What has come of a pin that was begun.
enum class Begun : uint8_t {
  kPinned,     // it is one, as pin() makes it
  kStarted,    // the block is being read: end_pins() will tell
  kFailed,     // as pin() would have
  kWouldWait,  // for others: by pin(), or later. pin.was_miss: its read is under way, and counted
};
struct EndedPin {
  uint64_t tag = 0;
  Pin pin;
  Status status;  // an error: there is no pin, and the error handler knows
};

class Policy;

// Sees what the cache does. Threads: any, at once.
class Observer {
 public:
  virtual ~Observer() = default;
  // A client asks for a pin, in its own thread.
  virtual void used(BlockId) {}
  // A block was evicted; one gets a frame, to be read from its store;
  // blocks are no longer what they were: freed, or new.
  virtual void left(BlockId) {}
  virtual void came(BlockId) {}
  virtual void ended(BlockId /*first*/, uint64_t /*count*/) {}
};

enum class Delegation : uint8_t { kCombining, kDedicated };

struct Options {
  uint32_t frame_count = 0;
  unsigned block_shift = 12;
  unsigned partitions = 0;  // 0: chosen from the frame count and cores; a power of two
  Delegation delegation = Delegation::kCombining;
  unsigned servers = 1;  // dedicated only
  // As many as the machine has: memory of partition p is to come from the (p % nodes)th of them. 1: from anywhere.
  unsigned nodes = 1;
  // The runtime always says (--policy, by default clock2q+). Who makes a cache alone, as tests do, gets the plainest
  // one: some in tests/access/mapped push blocks out by reading others, and clock2q+ would keep a few of them.
  std::string policy = "clock";
  // An eviction policy for so many frames, instead of `policy`; nullptr where it cannot be made.
  std::function<std::unique_ptr<Policy>(uint32_t frame_count)> make_policy;
  bool clients_pin = true;              // for measuring: else each pin asks the partition's owner
  size_t queue_depth = 64;              // of each partition's asynchronous queue
  unsigned readahead_blocks_max = 256;  // of one stream; 0: none
  uint64_t readahead_bytes_max = 4 << 20;
  // Kept free ahead of need in each partition, where percents come to less, up to a sixteenth of its frames.
  uint32_t ahead_frames_min = 0;
  bool tunes_fills =
      false;  // a miss brings neighbours along where that saves more than it costs (fault_around.h)
  bool huge_frames = true;
  uint32_t staging_runs = 0;  // of frames that the cache makes by itself (frame_pool/pool_frames.h)
  // Clean victims and writes behind that a partition keeps ready, besides an eighth of its frames at most.
  uint32_t reserve_blocks_max = 1024;
  uint64_t reserve_bytes_max = 8 << 20;
  // How long a pin waits for a frame when all are pinned, or dirty with
  // nowhere to go, before it is an error. While blocks are being written it waits on: a store that answers late, or
  // connects again, has its own limits. So long waits evict_to_limit(), too, but not on.
  uint64_t frame_wait_ns_max = 30'000'000'000;
  // Called by a client that found no frame, before it waits for one:
  // who holds pins that he can do without gives them up.
  void (*no_frame)() = nullptr;
  Observer* observer = nullptr;
  // Is told of used(), and of nothing else unless it is `observer`, too.
  Observer* use_observer = nullptr;
};

// One thread's door to the cache.
class Client;

// Writes that were begun and not waited for.
struct Flushing {
  struct OfPartition {
    PartitionId partition;
    uint64_t sequence;   // failures of transfers from here on
    uint64_t flush_end;  // and before here are of these writes
  };
  std::vector<OfPartition> partitions;
};
// Blocks that follow one another.
struct BlockRun {
  BlockId first;
  uint64_t count = 0;
};

// Called when a transfer finally failed (after retries) and cannot be waited out. Names block, store and
// offset. The runtime's handler reports and ends the program; tests' handlers record.
using IoErrorHandler = void (*)(void* context, const Status& status);

// Whether the first use of a block that was read ahead for a client comes back as a pin. Where it does not (a thread
// that serves page faults), streams are told by the uses of one marked block in each window (partition/parking.cc).
enum class Uses : uint8_t { kSeen, kUnseen };

class SharedCache {
 public:
  // `frames`: where blocks are kept; nullptr: in a pool of the cache's own.
  static Result<std::unique_ptr<SharedCache>> create(const Options& options, BlockSource& source,
                                                     IoErrorHandler on_error, void* error_context,
                                                     std::unique_ptr<FrameSource> frames = nullptr);
  virtual ~SharedCache() = default;

  virtual Result<Client*> open_client(Uses uses = Uses::kSeen) = 0;
  virtual void close_client(Client* client) = 0;

  // Brings `block` into a frame, counts one reference to it and returns where it is. Blocks while it is read and, when
  // all frames are pinned or dirty, until one is free. EIO after retries; EBUSY when all frames stay pinned for
  // frame_wait_ns_max; the error of the last write (ENOSPC, …) when dirty blocks have nowhere to go. EFAULT when it
  // belongs to no region, which is no error where blocks lie at their own addresses: the error handler is not told.
  virtual Status pin(Client& client, BlockId block, Access access, Pin* out) = 0;
  // pin() in two steps, so that a thread can have many reads in flight: begin_pin() of each block, start_fills() once
  // for all of them, and end_pins() of those that are done. None of them waits: for no read, no frame, and no owner,
  // who may have faulted and wait for the caller. What would have to wait is kWouldWait, and what is read ahead on its
  // account is left undone. Each Fills belongs to one thread at a time and lives as long as the cache. nullptr: there
  // are none, and all is to be had by pin().
  virtual Fills* open_fills() { return nullptr; }
  virtual Begun begin_pin(Client&, Fills&, BlockId, Access, uint64_t /*tag*/, Pin*, Status*) {
    return Begun::kWouldWait;
  }
  // The same in one step, for a miss that is the only one: it waits for the read of the block, if that is all it needs,
  // and for nothing else. Never kStarted.
  virtual Begun try_pin(Client&, BlockId, Access, Pin*, Status*) { return Begun::kWouldWait; }
  // So many more may be in flight.
  virtual size_t room_for_fills(const Fills&) const { return 0; }
  virtual void start_fills(Fills&) {}
  virtual size_t end_pins(Client&, Fills&, std::span<EndedPin>) { return 0; }
  // How to sleep until there is something for end_pins(): until one of the descriptors that are added to `fds` is
  // readable, or the time that it returns has passed.
  virtual uint64_t sleep_of_fills(Fills&, std::vector<int>* /*fds*/) { return UINT64_MAX; }
  // As pin(), for a caller that takes errors himself: the error handler is not told.
  virtual Status pin_quietly(Client& client, BlockId block, Access access, Pin* out) {
    return pin(client, block, access, out);
  }
  // As pin(); but of a block that has an address of its own, what has to be read for it comes into the pool (it is
  // loose), without any change to page tables. So pin.data need not be at that address.
  virtual Status pin_loose(Client& client, BlockId block, Access access, Pin* out) {
    return pin(client, block, access, out);
  }
  // As pin() to read, but a store is likely to follow: what has to be read of a shared file may come in dirty, and be
  // written only if it has changed by then.
  virtual Status pin_expecting(Client& client, BlockId block, Pin* out) {
    return pin(client, block, Access::kRead, out);
  }
  // To its own address, if it is loose; who holds it is the caller. False: others hold it, too, or it is being written.
  virtual bool place(FrameId) { return true; }
  // References to a frame that the caller holds.
  virtual uint64_t references(FrameId) const { return 1; }
  // Hints that move lines of the tables towards the processor and change nothing: pin(block) is near; and pin(block) is
  // next, and pin_is_near(block) was some time ago; unpin(frame) is near.
  virtual void pin_is_near(BlockId) const {}
  virtual void pin_is_next(BlockId) const {}
  virtual void unpin_is_near(FrameId) const {}
  // Whether a pin would find its contents there: as of some recent instant, in a few nanoseconds.
  virtual bool is_resident(BlockId) const { return false; }
  // A pin of a block that is there or on its way; false: it is not, or could not be read, of which nobody is told.
  virtual bool pin_present(Client&, BlockId, Access, Pin*) { return false; }
  // While frames are plentiful, `block` and the never-written blocks
  // around it in its group become resident zeros, dirty.
  virtual void bring_in_zeros(Client&, BlockId) {}
  // Marks those of the blocks dirty that are there and clean, as a
  // pin for kWrite would, but that they do not count as used.
  virtual void dirty_resident(BlockId /*first*/, uint64_t /*count*/) {}
  // Pins of neighbours, which lie in one group and belong to one region, in one step: of as many as can be had so, from
  // the first on; out[i] is that of first + i. 0: pin() has to see to the first one, and says what is wrong if
  // anything is. Those that are there come at once, and of others, for kOverwrite, as many as have frames.
  virtual uint32_t pin_run(Client&, BlockId /*first*/, uint32_t /*count*/, Access, Pin* /*out*/) { return 0; }
  // Of such neighbours, which are about to be pinned for reading: if the first is not there, as many as are not are
  // asked for by one request. May do less, and does not wait.
  virtual void miss_run(Client&, BlockId /*first*/, uint32_t /*blocks*/) {}
  // Another reference to a frame this client holds pinned, and/or dirty for one pinned for read.
  virtual void mark_dirty(Client& client, FrameId frame) = 0;
  virtual void unpin(Client& client, FrameId frame) = 0;
  // Asks for [first, first + count) to be brought in, without waiting; may do less than asked, never pins.
  virtual void prefetch(Client& client, BlockId first, uint64_t count) = 0;
  // Nor for an owner: of what that would take, nothing is done.
  virtual void prefetch_at_once(Client&, BlockId /*first*/, uint64_t /*count*/) {}
  // Where blocks lie at their own addresses: these have been written there without the cache, in which they are
  // resident and dirty from now on. None of them is cached.
  virtual void adopt(Client& client, BlockId first, uint64_t count) = 0;
  // Drops what is cached of [first, first + count) without a write. The caller guarantees that no thread uses the
  // range; a frame that somebody still pins (a SATC; a fault that is being served) is zeroed and stays, as dirty as it
  // was: a SATC may go on storing to it without telling, should the range be handed out again. So what the range stands
  // for next has to begin with zeros: never a file (heap/range_allocator.h).
  virtual void discard(Client& client, BlockId first, uint64_t count) = 0;
  // Evicts what is cached of the blocks and nobody uses; what is dirty of that begins to be written, and goes with a
  // later call. True: none of them is cached, or on its way, as of some moment.
  virtual bool take_out(Client&, BlockId /*first*/, uint64_t /*count*/) { return false; }
  // From now on the blocks come and go one by one, and are where their pages can be protected: no extents.
  virtual void keep_small(Client&, BlockId /*first*/, uint64_t /*count*/) {}
  // The process is about to fork: until end_fork() no block is in an extent, but for those that somebody has kept
  // pinned for long, which are at their own addresses and stay there. One thread at a time.
  virtual void begin_fork(Client&) {}
  virtual void end_fork() {}
  // At most this many frames are in use from now on, as soon as evict_to_limit() has returned; at least
  // kPartitionLimitMin of each partition.
  virtual void set_frame_limit(uint32_t frames) = 0;
  // So many blocks have come and gone, or will, that would have done so in here, had they not been in extents: what
  // left before them left longer ago.
  virtual void note_passed(uint64_t blocks) = 0;
  virtual uint32_t frame_limit() const = 0;
  // Evicts until every partition's frames in use are within its limit, and where fewer than `low_percent` of the limit
  // are free until `high_percent` are (of few frames Options::ahead_frames_min, and twice as many). Stops, without an
  // error, where nothing can be evicted now: what is dirty has its writes started, and goes with a later call. False:
  // no partition had too little room, or where one had nothing can be evicted for now and nothing is being written.
  virtual bool make_room(Client& client, unsigned low_percent, unsigned high_percent) = 0;
  // make_room(client, 0, 0), and waits until those writes are done and what is above the limit has gone. ETIMEDOUT when
  // that takes longer than frame_wait_ns_max (frames stay pinned, or the store is full, fails or is slow): the limit
  // holds for whoever needs a frame all the same, and the rest goes with later calls.
  virtual Status evict_to_limit(Client& client) = 0;
  // Writes the dirty blocks of the range to their stores (pinned ones too, which stay dirty); they stay cached.
  virtual Status flush(Client& client, BlockId first, uint64_t count) = 0;
  // flush() of the runs that next() gives until one is empty, in two steps: all writes are begun, and then waited for.
  virtual void begin_flush(Client& client, const std::function<BlockRun()>& next, Flushing* flushing) = 0;
  virtual Status end_flush(Client& client, Flushing* flushing) = 0;
  // end_flush(), if it need not wait. False: some of it is not over; what is has left `flushing`, its error in *status.
  virtual bool try_end_flush(Client& client, Flushing* flushing, Status* status) = 0;
  // Waits until what is being written of the blocks when it is called has been.
  virtual void await_writes(Client&, BlockId /*first*/, uint64_t /*count*/) {}
  // Calls visit for the frames whose blocks their stores have not, or may not have: as of about now.
  virtual bool holds(Resident) const { return false; }
  virtual void for_each_unwritten(const std::function<void(Resident)>& /*visit*/) const {}
  // Whether the block is there and has not been written since somebody
  // made it dirty: as of now, for whoever is told that it was cleaned.
  virtual bool is_dirty(BlockId block) const = 0;
  // The same for a block that lies in this frame.
  virtual bool holds_dirty(Resident resident) const { return is_dirty(resident.block); }
  // flush(), and syncs the stores.
  virtual Status sync(Client& client, BlockId first, uint64_t count) = 0;

  virtual PartitionMap partition_map() const = 0;
  virtual uint32_t frames_per_partition() const = 0;  // of the smallest partition

  // `store` is about to be destroyed and no block of it is cached: closes the queues that are open on it.
  virtual void close_store(Client&, store::Store&) {}

  // The memory file in which frame f stands at f << block_shift, so that it can be mapped a second time; nullptr: none.
  virtual const platform::File* frames_file() const { return nullptr; }
  // As FrameSource::memory_file_bytes().
  virtual uint64_t memory_file_bytes() const { return 0; }
  virtual uint32_t frame_count() const = 0;
  virtual uint32_t free_frames() const = 0;
  // Of frame_limit(); the two counts are read one after the other, so this is about right.
  uint32_t used_frames() const {
    const uint32_t limit = frame_limit();
    return limit - std::min(free_frames(), limit);
  }
  // That hold a block, those above the limit, too, which are to be evicted.
  virtual uint32_t occupied_frames() const = 0;
  // Whether a miss in this partition finds a frame without evicting. A hint: one relaxed load.
  virtual bool has_free_frames(PartitionId partition) const = 0;
  virtual uint32_t peak_frames() const = 0;
  virtual uint64_t metadata_bytes()
      const = 0;  // tables, words, queues: what the cap counts beside the frames
  // For the check build and tests: SPW_CHECKs every invariant above. Only while no operation runs; transfers may.
  virtual void check_invariants() = 0;
};

}  // namespace spw::cache
