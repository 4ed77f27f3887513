// Pages of a store whose contents are here, compressed, and not (only) on its device.
//
//     kOnDevice  the device has the contents                      (how every page begins)
//     kZero      all zeros, and the device may have anything      (no memory)
//     kHeld      in the pool; the device has them, too, if is_on_device
//
//     kOnDevice -- keep() ----> kHeld            any -- keep() of zeros --> kZero
//     kHeld ----- keep() that is refused, discard() ---> kOnDevice
//     kHeld ----- begin_eviction(), written, end_eviction() ---> kOnDevice
//
// While an eviction writes a page its contents stay here (is_leaving), so reads find them. What takes their place in
// the meantime stays here too, whatever it compresses to (has_changed), and a page that is discarded becomes kZero:
// the write that is under way may reach the device after all that follows, so that the device must not count until it
// has ended. So of one page two writes are never under way at once.
//
// Eviction goes round the pool as CLOCK does: a page that was read since the hand last passed stays for another round.
// With it leave those of its group (kGroupPages, aligned) that were not read either, for the device likes writes of
// neighbours.
//
// Threads: any. A group's pages are under one of kLocks locks; the pool's locks come after it. A page is not read and
// written at the same time (store.h's users see to that), nor written by two.
// Memory: 8 bytes for each page that was ever kept, in whole pages of the table; the pool.
// Around a fork: lock_for_fork(). The child has a copy of it all, of which nothing is evicted any more: the device is
// its parent's to write to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "base/atomic.h"
#include "base/status.h"
#include "store/checked/page_table.h"
#include "store/compressed/object_pool.h"
#include "store/compressed/page_codec.h"

namespace spw::store {

class CompressedPages {
 public:
  static constexpr uint64_t kPageBytes = PageCodec::kPageBytes;
  static constexpr uint64_t kGroupPages = 16;
  static constexpr uint64_t kGroupBytes = kGroupPages * kPageBytes;

  // `budget` and `codec` outlive it.
  static Result<std::unique_ptr<CompressedPages>> create(uint64_t store_bytes, PageCodec& codec,
                                                         PoolBudget& budget);

  enum class Found : uint8_t { kOnDevice, kHere, kDamaged };
  // kHere: `to` has the page's contents now. kDamaged: what is here cannot be opened.
  Found read(uint64_t page, std::byte* to);
  bool is_here(uint64_t page);
  // The page's new contents. False: they are to go to the device.
  bool keep(uint64_t page, const std::byte* contents);
  // What the device has just given, where there is room.
  void keep_what_was_read(uint64_t page, const std::byte* contents);
  void discard(uint64_t first, uint64_t count);

  // Pages of one group that are about to leave: those in `pages` are to be written, from `buffer` + i * kPageBytes.
  struct Leaving {
    uint64_t first_page = 0;  // of the group
    uint32_t pages = 0;       // bits
  };
  // Room is to be made: takes pages out, the next that the hand finds. `buffer`: kGroupBytes. nullopt: nothing is to
  // be written, be it that pages left at once.
  std::optional<Leaving> begin_eviction(std::byte* buffer);
  // Written: they are gone, but for those that changed. Else they are here as before.
  void end_eviction(const Leaving& leaving, bool are_written);
  // Whether evictions should begin, so that what comes finds room.
  bool is_short() const;

  void lock_for_fork();
  void unlock_after_fork();
  void in_child();
  void check_invariants();

 private:
  enum Kind : uint64_t { kOnDevice, kZero, kHeld };
  struct Entry {
    uint64_t kind : 2;
    uint64_t is_on_device : 1;
    uint64_t was_read : 1;
    uint64_t is_leaving : 1;
    uint64_t has_changed : 1;  // since it is leaving
    uint64_t bytes : 13;       // in the pool
    uint64_t place : ObjectPool::kPlaceBits;
  };
  static_assert(sizeof(Entry) == 8);

  static constexpr size_t kLocks = 256;
  // Of regions of so many pages each it is known whether they compress.
  static constexpr uint64_t kRegionPages = 512;
  static constexpr size_t kRegions = 1024;
  static constexpr uint8_t kMisfitsMax = 16;
  static constexpr uint8_t kProbeEvery = 16;

  CompressedPages(PageCodec& codec) : codec_(codec) {}
  platform::SmallLock& lock_of(uint64_t page) { return locks_[page / kGroupPages % kLocks]; }
  bool is_worth_a_try(uint64_t page);
  void note_fit(uint64_t page, bool fits);
  // Under the page's lock.
  void put(Entry& entry, uint64_t page, const std::byte* bytes, size_t count, bool is_forced);
  void drop(Entry& entry);
  bool leave_device(Entry& entry);
  std::optional<Leaving> take_group(const ObjectPool::Found& found, std::byte* buffer);

  PageCodec& codec_;
  std::unique_ptr<ObjectPool> pool_;
  PageTable<Entry> entries_;
  std::array<platform::SmallLock, kLocks> locks_;
  std::array<Atomic<uint8_t>, kRegions> misfits_{};  // in a row
  platform::SmallLock hand_mutex_;
  bool evicts_ = true;  // this process may write to the device
};

}  // namespace spw::store
