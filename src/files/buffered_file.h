// One file on the shared cache: what read(2), write(2), ftruncate(2) and fsync(2) ask of it, without a system call
// where the blocks are in memory. (ScaleCache, sections "Background: buffered I/O" and "Direct flush", in user space.)
//
// The file has a range of managed addresses, in which the block at offset o is the block of address() + o. So it is
// cached, evicted, written behind and read ahead like any region, by either engine, and memory that is mapped from the
// range is the file's own. Where the engine has a better place for blocks that nobody reaches by their addresses, the
// range is one of those until the file is mapped.
//
// Invariants
//   blocks of the range are live up to the one that holds the file's
//       end, and no further; of an empty file there is no region
//   bytes behind the file's end are zeros in every block that is cached or read
//   the store's size is at least size(), and equal to it but while a write makes the file longer
// Sizes: a write behind the end makes the file longer at once for its users. The file on disk follows when blocks are
//   written, and has exactly this size after sync(), flush() or resize().
// Order: a write is seen by whoever reads after it returned. Writes to one block come
//   one after the other; a read may see a part of a write to several blocks, as with
//   the kernel's files. Writes that make the file longer come one after the other.
// Errors: a block that cannot be read is EIO and was not touched; what cannot be written stays in memory, dirty, and is
//   tried again: every sync() until then says so.
//   Where the kernel says that a sync has failed, every sync of the file
//       says so until it is opened anew: what was lost is not known.
// Threads: any. Locks: io_ (shared by reads and writes, alone for what moves or ends blocks), then growth_, then a
//   stripe. They are held while blocks are read and while the caller's memory is copied; nothing below takes them.
// Limits: kFileBytesMax, and what managed space has left. A file that outgrows its
//   addresses gets others, kReserveFactor times its new size, where there are; addresses
//   are not used again, which is enough for half a million files opened and closed.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>

#include "access/engine.h"
#include "base/atomic.h"
#include "cache/cache.h"
#include "cache/page_cleaner.h"
#include "files/dirty_blocks.h"
#include "files/flusher.h"
#include "files/write_stripe.h"
#include "heap/mappings.h"
#include "region/region_map.h"
#include "store/growing_store.h"

namespace spw::files {

inline constexpr uint64_t kFileBytesMax = uint64_t{1} << 43;

// What files stand on.
struct FileParts {
  cache::SharedCache& cache;
  access::Engine& engine;
  region::RegionMap& regions;
  heap::Mappings& mappings;
  FlushOptions flush;
  uint64_t index_bytes_max = 0;             // memory for the indexes of dirty blocks of all files
  heap::Mappings* call_mappings = nullptr;  // addresses for files that are not mapped; nullptr: as for others
  uint64_t trial_calls = 0;        // of a small file before it is buffered (trial.h); 0: it is at once
  std::string_view patterns = {};  // of the paths of files that go on trial
  // Room is made ahead of need from the first file on. No evictors:
  // whoever misses makes it, or a page cleaner of the engine's own.
  cache::PageCleaner::Options room{.evictors = 0};
};

// Which file it is, to the kernel.
struct FileKey {
  uint64_t device = 0, inode = 0;
  auto operator<=>(const FileKey&) const = default;
};

// What all files share.
struct FileTools {
  PageNodes& nodes;
  Flusher& flusher;
  // Calls that hold a run of blocks while they copy from or to managed memory, for which they may need frames.
  Atomic<uint32_t>& runs_beside_managed;
};

// The caller's memory of one call, which may be managed, front to back.
class Pieces {
 public:
  explicit Pieces(std::span<const iovec> pieces);
  uint64_t bytes() const { return bytes_; }
  // Some of it is.
  bool is_managed() const { return is_managed_; }
  // The next `bytes` of it; no more than bytes() in all.
  void put(const std::byte* from, uint64_t bytes);
  // The place from which the next put() goes on; and there again.
  struct Mark {
    std::span<const iovec> left;
    uint64_t within;
  };
  Mark mark() const { return {left_, within_}; }
  void go_back(const Mark& mark) {
    left_ = mark.left;
    within_ = mark.within;
  }
  void get(std::byte* to, uint64_t bytes);

 private:
  template <class Move>
  void for_each(uint64_t bytes, Move move);

  std::span<const iovec> left_;
  uint64_t within_ = 0;  // of the first one left
  uint64_t bytes_ = 0;
  bool is_managed_ = false;
};

class BufferedFile {
 public:
  // The error of calls on a file that has retired: whoever gets it asks the kernel. No call that is made here gives it.
  static constexpr int kRetired = EREMCHG;

  // The error of calls on a file that cannot be opened for what they ask: nothing was changed, and it is to be given
  // back to the kernel (retire()).
  static constexpr int kNotOpened = ENOMEDIUM;

  // The regular file that `fd` has open, for reading and writing or,
  // where that is refused, for reading. `fd` stays the caller's.
  static Result<std::unique_ptr<BufferedFile>> open(const FileParts& parts, const FileTools& tools, int fd,
                                                    const std::string& name, const FileKey& key = {});
  // The same, opened when something has to be read or written: of what open_by() names then. The file has this stamp,
  // and is on a device whose files take direct transfers of this alignment.
  static Result<std::unique_ptr<BufferedFile>> open_later(const FileParts& parts, const FileTools& tools,
                                                          const platform::FileStamp& stamp,
                                                          const std::string& name, uint64_t alignment_bytes);
  // One of the process's descriptors that has the file open, by which it is opened; any other serves if it is gone.
  void open_by(int fd) { program_fd_.store_relaxed(fd); }
  // Opens all of it now.
  Status open_now();
  uint64_t alignment_bytes() const { return file_->alignment_bytes(); }
  // The file that a growing store is. `name`: for messages.
  static Result<std::unique_ptr<BufferedFile>> open_on(const FileParts& parts, const FileTools& tools,
                                                       std::unique_ptr<store::GrowingStore> store,
                                                       const std::string& name);
  // What `fd` has open, with a descriptor of our own that can read it and, where that is allowed, write it.
  static Result<platform::File> open_for_both(int fd, const std::string& name);
  bool is_direct() const { return file_->is_direct(); }
  // It can be made neither shorter nor longer (a striped file of devices): ENOSPC for what lies behind its end.
  bool has_fixed_size() const { return file_->has_fixed_size(); }
  // Drops what is cached. flush() comes before it, or it is lost.
  ~BufferedFile();
  BufferedFile(const BufferedFile&) = delete;
  BufferedFile& operator=(const BufferedFile&) = delete;

  // Whoever opened it says under which it is known; a striped file, that of its first member.
  void know_as(const FileKey& key) { key_ = key; }
  const FileKey& key() const { return key_; }
  uint64_t size() const { return size_.load_acquire(); }
  bool is_writable() const { return file_->is_writable(); }
  // One of our own that the file is open by; -1: it is striped, parked, or none was needed.
  int fd() const { return file_->fd(); }
  const std::string& name() const { return name_; }

  // Keeps what is cached, all of it clean, but not the file: it was flushed, nobody
  // uses it, and nobody will until unpark(), when it has the same stamp: its own, or, where it was never opened here,
  // what it had before, which is ENODATA. Parked files take no descriptors. unpark(): `fds`: one for each file that it
  // is made of.
  Result<platform::FileStamp> park();
  Status unpark(std::span<const int> fds);

  // How many bytes were moved: fewer than asked for at the file's
  // end, or before an error. An error only where none were.
  Result<uint64_t> read(uint64_t offset, std::span<const iovec> to);
  Result<uint64_t> write(uint64_t offset, std::span<const iovec> from);
  // A write at the file's end; *offset: where that was.
  Result<uint64_t> append(std::span<const iovec> from, uint64_t* offset);
  // ftruncate(2); EACCES where the file cannot be written.
  Status resize(uint64_t bytes);
  // resize(0), as open(2) does it: a file that is empty is not changed.
  Status make_empty();
  // resize(), if that makes it longer.
  Status extend(uint64_t bytes);
  // What is dirty of [offset, offset + bytes) reaches the file.
  Status flush(uint64_t offset = 0, uint64_t bytes = kFileBytesMax);
  // flush() of all of it, so that other processes see it: to the kernel's memory, unless it is much.
  Status hand_over();
  // flush() of all of it, and the file is durable: its data, size and
  // what else it takes to read it or, if `whole`, all of its metadata. The kernel is not asked where nothing was
  // written since the last one and the file's times, which any other change moves, show that there was none.
  Status sync(bool whole);

  // flush() of all of it, after which the kernel's file is all there is: whatever is asked for from now on is kRetired.
  // EBUSY where it is mapped. Where it cannot be written whole, it stays as it was.
  Status retire();
  bool is_retired() {
    std::shared_lock lock(io_);
    return !retired_;
  }

  // Where [offset, offset + bytes), which ends on the file's last page or before, is in memory: the file's own, for
  // reading and writing, until unmap() of that address. Meanwhile the file neither moves, so that it cannot grow
  // without end (ENOSPC), nor gets shorter than that (EBUSY).
  Result<uintptr_t> map(uint64_t offset, uint64_t bytes);
  void unmap(uintptr_t address);

  // For the flusher. Begins to write the next dirty blocks, at most so many, once what was begun here before has been
  // written, which it waits for where `waits` says so. False: it has not been, or there are none, or another thread is
  // at it, or they could not be written a moment ago.
  bool flush_some(uint64_t blocks_max, bool waits);
  // As far as its index says, which knows everything.
  bool is_clean() const {
    return dirty_.count() == 0 && knows_its_dirty_blocks() && sync_error_.load_relaxed() == 0;
  }
  uint64_t dirty_blocks() const { return dirty_.count(); }
  // More than goes by the kernel's memory.
  bool has_much_to_write() const {
    return dirty_.count() << parts_.regions.block_shift() > kHandOverBytesMax;
  }
  // How many names the file has; UINT64_MAX: that is not known.
  uint64_t links() const;
  // 0: it is clean. Of blocks that were made dirty in memory nobody knows since when: since the last flush.
  uint64_t dirty_since_ns() const {
    return was_mapped_.load_acquire() ? flushed_at_ns_.load_relaxed() : dirty_.since_ns();
  }

 private:
  static constexpr uint64_t kHandOverBytesMax = kMiB;
  static constexpr uint64_t kRetryNs = 1'000'000'000;
  static constexpr uint64_t kRunBlocksMax = 1024;
  static constexpr uint64_t kReserveBytesMin = 16 * kMiB;
  static constexpr uint64_t kReserveFactor = 4;
  static constexpr size_t kStripes = 16;
  // Neighbours that share a stripe; a run of blocks that one step reads or writes is no longer.
  static constexpr uint32_t kStripeBlocks = 32;
  // So many calls beside managed memory may hold runs. A run is an eighth of a partition's frames at most, so others
  // find some.
  static constexpr uint32_t kRunsBesideManagedMax = 4;
  class Held;
  class HeldRun;

  BufferedFile(const FileParts& parts, const FileTools& tools)
      : parts_(parts),
        flusher_(tools.flusher),
        runs_beside_managed_(tools.runs_beside_managed),
        dirty_(tools.nodes, parts.cache, parts.regions.block_shift(), tools.flusher.dirty_blocks()) {}
  enum class Reach : uint8_t { kCalls, kAddresses };
  Status reserve(uint64_t end, Reach reach);
  Status move_alone(uint64_t end, Reach reach);
  Status too_large() const;
  Status make_room(uint64_t end);
  Status grow(uint64_t end);
  void shrink_region(uint64_t bytes);
  Status zero_tail(uint64_t bytes);
  Status zero_behind_end(uint64_t size);
  Status settle();
  Status resize_alone(uint64_t bytes);
  Status read_block(cache::Client& client, uint64_t offset, Pieces& to, uint64_t bytes);
  Status flush_live(uint64_t offset, uint64_t bytes, uint64_t live_bytes);
  Status flush_by_index(uint64_t begin, uint64_t end);
  Status flush_alone();
  Result<uint64_t> write_to_cache(uint64_t offset, std::span<const iovec> from);
  Result<uint64_t> append_to_cache(std::span<const iovec> from, uint64_t* offset);
  Result<uint64_t> write_at(uint64_t offset, Pieces& from, uint64_t bytes);
  Result<uint64_t> write_longer(uint64_t offset, Pieces& from, uint64_t bytes);
  Status write_block(cache::Client& client, uint64_t offset, Pieces& from, uint64_t bytes);
  uint64_t write_run(cache::Client& client, uint64_t offset, Pieces& from, uint64_t bytes);
  uint64_t read_run(cache::Client& client, uint64_t offset, Pieces& to, uint64_t bytes);
  WriteStripe& stripe_of(BlockId block) { return stripes_[block.value / kStripeBlocks % kStripes]; }
  Status pin(cache::Client& client, uint64_t offset, cache::Access access, cache::Pin* pin);
  Status pin_unopened(cache::Client& client, uint64_t offset, cache::Access access, cache::Pin* pin);
  bool is_open_for(store::GrowingStore::Use use) const {
    return (~open_for_.load_acquire() & static_cast<uint8_t>(use)) == 0;
  }
  Status need(store::GrowingStore::Use use);
  Status need_for_writes(uint64_t bytes);
  void want_transfers();
  bool is_synced(bool whole);
  // What a sync found before it asked the kernel, where that says whether the next one has to: nothing was written
  // since, and the kernel's file is the same, times and all.
  struct Synced {
    bool is_known = false;
    bool whole = false;  // as its sync() was
    uint64_t writebacks = 0;
    platform::FileStamp stamp;
  };
  Synced sync_point(bool whole);
  BlockId block_at(uint64_t offset) const;
  uint64_t blocks_of(const Result<uint64_t>& written) const;
  bool knows_its_dirty_blocks() const { return dirty_.is_complete() && !was_mapped_.load_acquire(); }
  region::FileMapping mapping();
  cache::BlockRun next_dirty(uint64_t* from, uint64_t last, uint64_t blocks_max);

  const FileParts parts_;
  Flusher& flusher_;
  Atomic<uint32_t>& runs_beside_managed_;
  FileKey key_;
  std::string name_;
  Atomic<int> program_fd_{-1};
  Atomic<uint8_t> open_for_{
      0};                   // GrowingStore::Use that it was opened for; a dirty file for kWrites at least
  bool is_parked_ = false;  // under io_
  Status retired_;          // kRetired; changed under io_ alone
  std::shared_ptr<store::Store> store_;
  store::GrowingStore* file_ = nullptr;  // the same
  uint64_t bytes_max_ = kFileBytesMax;
  std::shared_mutex io_;
  std::mutex growth_;
  uint64_t settled_size_ = 0;  // what the file on disk was made to be last; under growth_, or io_ alone
  Atomic<uint64_t> size_{0};
  uintptr_t address_ = 0;           // changed under io_ alone
  heap::Mappings* home_ = nullptr;  // whose address that is
  uint64_t reserved_bytes_ = 0;
  uint64_t live_bytes_ = 0;  // of the range; changed under growth_, or io_ alone
  // A sync that failed stays failed: the kernel tells of what it lost once, and forgets it.
  Atomic<int> sync_error_{0};
  std::mutex syncing_;  // guards what follows
  Synced synced_;
  bool times_are_own_ = false;         // platform::shows_times_of_their_own() has been true
  Atomic<uint64_t> flushed_at_ns_{0};  // when the last flush of everything began, or the file was mapped
  Atomic<bool> was_mapped_{false};     // then its index lacks blocks that were made dirty in memory
  std::multimap<uintptr_t, uint64_t> mapped_;  // address, and the end in the file; under io_ alone
  // Writes to the blocks of one come one after the other. A read that ran beside a write reads again, alone, so that it
  // sees none of what a block held that was overwritten without having been read.
  std::array<WriteStripe, kStripes> stripes_;
  DirtyBlocks dirty_;

  std::mutex flush_turn_;  // of flush_some(), which takes it only if it is free; guards what follows
  cache::Flushing begun_;
  uint64_t flush_cursor_ = 0;
  uint64_t retry_at_ns_ = 0;
};

}  // namespace spw::files
