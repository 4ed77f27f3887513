// Regions: which store holds a block of managed space, where, and whether it holds anything yet.
//
// A block b of managed space is live or not. What a live block is
// follows from its chunk (kChunkBytes of managed space):
//   anonymous      on the spill store at offset b << block_shift: neighbours in address are neighbours on disk. There may
//                  be several of these after a fork (spill_layers.h)
//   file, shared   on its file, read and written there
//   file, private  on its file until it was written back once, from then on like an anonymous block
//   file, read-only  on its file, which refuses a writeback: that is how a store to such a mapping is reported
// Invariants
//   a spill layer has b => b is live, and b's contents are there at its identity offset
//   chunk c belongs to a file region f => every live block of c belongs to f
//   f.live_blocks = number of live blocks in f's chunks
// Never written means zero without I/O; a removed or discarded range is never-written again. Its space goes back to
// the spill store: of a removed range in batches (hole_list.h), of a discarded one, which is in use still, at once.
// File ends: blocks that begin at or behind the file's end at the time of mapping are not live. Of the block that
// holds the end, bytes behind it read as zeros and must not extend the file: the store sees to that (store.h).
//
// Threads: lookups (BlockSource) lock-free from any thread; changes under one mutex. A range is changed only while no
// thread uses it; read-ahead may look it up meanwhile and sees either state.
// Lifetime: stores outlive this, except a region's own, which it keeps until its last block is removed. attach() comes
// before the first file region, remove() or discard(). Limits: kFileRegionsMax file regions at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "base/ids.h"
#include "base/status.h"
#include "base/units.h"
#include "cache/cache.h"
#include "region/cache_ranges.h"
#include "region/native_memory.h"
#include "region/sparse_bits.h"
#include "region/spill_layers.h"
#include "store/store.h"

namespace spw::region {

// File regions begin on a chunk and own whole chunks of address space.
inline constexpr uint64_t kChunkBytes = uint64_t{1} << kMaxBlockShift;
// Managed addresses below this are never handed out (granule 0 stands for "nothing" in the SATC).
inline constexpr uint64_t kFirstBytes = kChunkBytes;
inline constexpr uint32_t kFileRegionsMax = 65535;
inline constexpr uint64_t kFillBytesMax = 8 * kMiB;

enum class Order : uint8_t { kUnknown, kRandom, kSequential };

// kBufferedFile: as a shared one, but whoever made it writes it back (files).
enum class Kind : uint8_t { kNone, kAnonymous, kSharedFile, kPrivateFile, kReadOnlyFile, kBufferedFile };

// Who keeps an index of a region's dirty blocks is told of those that nobody asked for, and which are clean again:
// `first`, at `offset_bytes` of the file, and those behind it. By an owner of partitions, which must not be kept
// waiting, and must not be called.
class DirtyWatcher {
 public:
  virtual ~DirtyWatcher() = default;
  virtual void dirtied(uint64_t offset_bytes, uint64_t count) = 0;
  // `frames`: where they were as they were written (cache::BlockSource).
  virtual void cleaned(uint64_t offset_bytes, BlockId first, std::span<const FrameId> frames) = 0;
};

struct FileMapping {
  std::shared_ptr<store::Store> store;
  uint64_t offset_bytes = 0;  // a multiple of the store's alignment
  Kind kind = Kind::kSharedFile;
  DirtyWatcher* watcher = nullptr;  // outlives the region
};

class RegionMap final : public cache::BlockSource {
 public:
  // `space_bytes`: managed addresses that may be used, at most SPW_MANAGED_BYTES.
  static Result<std::unique_ptr<RegionMap>> create(unsigned block_shift, uint64_t space_bytes,
                                                   store::Store& spill);
  ~RegionMap() override;

  // Who caches these regions' blocks: the engine. Until then nobody does.
  void attach(CacheRanges* ranges) { ranges_ = ranges; }

  // Takes a file's store over for mappings of it: when the last of them goes, the cache forgets it first.
  std::shared_ptr<store::Store> adopt(std::unique_ptr<store::Store> store);

  // Addresses and sizes are multiples of the block (file regions' addresses of kChunkBytes).
  void add_anonymous(uintptr_t address, uint64_t bytes);
  // At addresses where no region ever was, since the cache may hold zeros there (SharedCache::discard). ENFILE when
  // there are too many file regions.
  Status add_file(uintptr_t address, uint64_t bytes, FileMapping mapping);
  // More of the anonymous or file region that ends at `address`; of a file region at the following file offset.
  void extend(uintptr_t address, uint64_t bytes);
  // Drops a range that lies within one region. Nothing is written: sync() a shared file first.
  void remove(uintptr_t address, uint64_t bytes);
  // The range, which is anonymous, stays live and is as if never written.
  void discard(uintptr_t address, uint64_t bytes);

  // Writes the range's dirty blocks; sync() syncs their stores, too.
  Status flush(uintptr_t address, uint64_t bytes);
  Status sync(uintptr_t address, uint64_t bytes);
  // Every shared file region. The first failure is returned, all are tried.
  Status flush_shared_files();
  Status sync_shared_files();
  void prefetch(uintptr_t address, uint64_t bytes);

  // The unit of fault-around: a miss on a block brings the aligned piece of so many bytes
  // that it lies in along, as far as it is live. A power of two up to kFillBytesMax;
  // not above the block: the block alone. Kept for each chunk that the range touches.
  void set_fill_bytes(uintptr_t address, uint64_t bytes, uint64_t fill_bytes);
  // Stands in for it, until it is 0 again. (Advice that comes and goes.)
  void advise_fill_bytes(uintptr_t address, uint64_t bytes, uint64_t fill_bytes);
  // By the order in which the range will be used.
  void advise_order(uintptr_t address, uint64_t bytes, Order order);
  cache::BlockRun fill_of(BlockId block) const;
  uint64_t fault_around_blocks(BlockId block) override {
    return chunk_fill_[chunk_of(block)].load_relaxed() != 0 ? fill_of(block).count : 0;
  }

  // Or had any.
  bool has_files() const { return file_slots_ > 0; }
  // Whether [address, address + bytes) lies in managed space and every block of it is live.
  bool is_live(uintptr_t address, uint64_t bytes) const;
  Kind kind_at(uintptr_t address) const;
  // Calls visit(first block, count) for the live runs of [first, first + count), as they are at about this time.
  template <class Visit>
  void for_each_live_run(BlockId first, uint64_t count, Visit visit) const {
    live_.for_each_run(first.value, count,
                       [&](uint64_t run, uint64_t blocks) { visit(BlockId(run), blocks); });
  }
  // Of a block that is a file region's, live or about to be so; kNone: of none.
  struct FilePlace {
    store::Store* store = nullptr;
    uint64_t offset_bytes = 0;
    Kind kind = Kind::kNone;
  };
  FilePlace file_place(BlockId block) const;
  // The file region's backing at a managed address: to map the same bytes elsewhere.
  FileMapping mapping_at(uintptr_t address);

  cache::Backing locate_for_fill(BlockId block) override;
  cache::Backing locate_for_writeback(BlockId block) override;
  bool is_buffered_file(BlockId block) override;
  bool is_anonymous(BlockId block) override;
  bool is_shared_file(BlockId block) override;
  // Or a private copy of a file's. (Of a shared file the store gets what was stored, and nothing else.)
  bool may_write_unstored(BlockId block) const;
  void written_back(BlockId block, const store::Store* to) override;
  void dirtied(BlockId first, uint64_t count) override;
  void cleaned(BlockId first, std::span<const FrameId> frames) override;

  unsigned block_shift() const { return block_shift_; }
  uint64_t block_bytes() const { return uint64_t{1} << block_shift_; }
  uint64_t live_bytes() const { return live_bytes_.load_relaxed(); }
  // Of anonymous memory that is on the spill store, in memory besides or not.
  uint64_t spilled_bytes() const { return spilled_.blocks() << block_shift_; }
  uint64_t metadata_bytes() const { return memory_.counted_bytes(); }
  NativeMemory& memory() { return memory_; }
  // Gives freed space back to the spill store now.
  void flush_holes();
  void lock_for_fork();
  // The rest, when no block leaves memory any more: a layer may only be kept from a child if whatever was written to
  // it since is in the child's memory. `are_shared`: the child will read them.
  void lock_layers_for_fork(bool are_shared);
  void unlock_after_fork();
  // In a child, in place of unlock_after_fork(). Who cached the blocks is gone.
  void in_child();
  // What was spilled, in layers that forks share. look_at_layers(): SpillLayers::look(); true: blocks should move.
  SpillLayers& spilled() { return spilled_; }
  bool look_at_layers();
  void check_invariants();

 private:
  struct FileRegion;
  using WriteRange = Status (CacheRanges::*)(BlockId first, uint64_t count);

  explicit RegionMap(unsigned block_shift, store::Store& spill)
      : block_shift_(block_shift), spilled_(spill, block_shift) {}
  Status allocate(uint64_t space_bytes);

  BlockId block_of(uintptr_t address) const;
  uint64_t blocks_of(uint64_t bytes) const { return bytes >> block_shift_; }
  uint64_t chunk_of(BlockId block) const { return block.value >> (kMaxBlockShift - block_shift_); }
  Kind kind_of(BlockId block) const;
  FileRegion* file_of(BlockId block) const;
  uint64_t file_offset(const FileRegion& file, BlockId block) const;
  uint64_t make_live(BlockId first, uint64_t count, bool has_contents);  // how many were not
  void set_chunks(BlockId first, uint64_t count, uint32_t slot);
  template <class Tell>
  void for_each_watched(BlockId first, uint64_t count, Tell tell) const;
  void make_file_blocks_live(FileRegion& file, BlockId first, uint64_t count);
  Status write_shared_files(WriteRange write);
  void change_fill(uintptr_t address, uint64_t bytes, uint16_t keep, uint16_t value);
  std::shared_ptr<store::Store> retire(FileRegion& file);

  const unsigned block_shift_;
  uint64_t blocks_ = 0;  // of the space
  CacheRanges* ranges_ = nullptr;
  NativeMemory memory_;
  SparseBits live_;
  SpillLayers spilled_;
  SparseArray<Atomic<uint32_t>> chunk_file_;  // slot of the chunk's file region, or 0
  // By chunk: log2 of the unit of fault-around, in the upper byte that of an advised one; 0: none.
  SparseArray<Atomic<uint16_t>> chunk_fill_;
  Atomic<uint64_t> live_bytes_{0};

  std::mutex mutex_;  // guards what follows, and every change of what stands above
  SparseArray<FileRegion*>
      files_;  // by slot; a FileRegion is reused, never freed, because lookups take no lock
  uint32_t file_slots_ = 0;
  FileRegion* free_files_ = nullptr;
};

}  // namespace spw::region
