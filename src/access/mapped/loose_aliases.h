// Loose blocks that are at their own addresses as well, for other code than asks for raw addresses.
//
// That code faults on a loose block, and the block is placed (cache::SharedCache::place). But as long as somebody else
// may be using its raw address, it has to stay where it is: then its page in the pool is mapped a second time, at the
// block's own address. Both are the same memory, so nobody has to wait for anybody: who holds a raw address may be
// asleep, or wait for the very thread that faults. While it has an alias nobody is given its raw address anew, and who
// asks for it and finds that nobody else holds it any more has it placed. After kAliasNs the alias goes in any case.
//
// Invariants
//   a slot in use holds one reference on its frame, so the block stays loose, and is mapped to its page of the pool
//   a slot is writable => its frame was marked dirty after that reference was taken
//   an alias admits no more than the program's own access rights do
//   a frame is let go only after the block's address faults again, without a page
// While an alias goes its address has no access for an instant: an access of the program's is a SIGSEGV then and tries
// again (admit_again), one of the kernel's would fail. So what the kernel is about to access is kept (is_kept); and
// there are no loose blocks where the kernel's own faults are served by others (FaultDelivery::kEvents).
// Threads: any; one mutex, which a handler of SIGBUS or SIGSEGV may take, since no code that holds it touches managed
// memory. Lifetime: the engine's; ends before the cache. Limits: `slots`.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "access/mapped/placed_pages.h"
#include "base/ids.h"
#include "base/status.h"
#include "cache/cache.h"
#include "platform/file.h"

namespace spw::access {

class LooseAliases {
 public:
  struct Options {
    std::byte* base = nullptr;  // of the block 0
    unsigned block_shift = 12;
    uint32_t slots = 0;
    Atomic<uint8_t>* uses = nullptr;  // by frame: kAliased while it has an alias, 0 when it has one no longer
    void (*fatal)(const Status&) = nullptr;
  };
  static constexpr uint8_t kAliased = 255;
  static constexpr uint64_t kAliasNs = 20'000'000;
  static constexpr uint32_t kSlotsMax = 64;
  // As many blocks as one instruction may need at once; never kept.
  static constexpr uint32_t kSlotsOfFaults = 4;

  // `pool`, `pool_base`: the memory file of loose blocks and where it is mapped. All outlive this.
  LooseAliases(const Options& options, cache::SharedCache& cache, cache::Client& client, PlacedPages& pages,
               const platform::File& pool, const std::byte* pool_base);

  // Makes a loose block, which the caller holds, accessible at its own address. `is_kept`: until let_go().
  // False: no more may be kept; else always true.
  bool admit(BlockId block, bool is_store, bool is_kept);
  void let_go(BlockId block);
  // SIGSEGV at the address: whether an alias of its block may be accessed so by now, as far as the program's own rights
  // go. `gone`: how many aliases have gone by now, one of which may be why.
  bool admit_again(uintptr_t address, bool is_store, uint64_t* gone);
  // Of blocks that are about to be discarded, or flushed: those that are kept stay then, and as dirty as they are.
  enum class Kept : uint8_t { kStay, kGo };
  void withdraw(BlockId first, uint64_t count, Kept kept);
  // Those that are older than kAliasNs.
  void withdraw_old(uint64_t now_ns);
  // Places the block instead, if it has an alias and nobody else holds it.
  void place(BlockId block);
  // Around a fork no alias comes or goes. Calls visit(block) for each: a child has nothing mapped there.
  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_)
      if (slot.is_used()) visit(slot.block);
  }
  // For a block that can do without.
  bool has_room() const { return used_.load_relaxed() < options_.slots / 2; }

 private:
  struct Slot {
    BlockId block;
    FrameId frame = kNoFrame;  // of a slot in use
    uint64_t offset_bytes = 0;
    uint64_t since_ns = 0;
    uint32_t kept = 0;
    bool writable = false;

    bool is_used() const { return frame != kNoFrame; }
  };

  std::byte* address_of(BlockId block) const { return options_.base + (block.value << options_.block_shift); }
  uint64_t block_bytes() const { return uint64_t{1} << options_.block_shift; }
  Slot* find(BlockId block);
  Slot* free_slot();
  bool may_keep(const Slot* slot) const;
  void open_to_stores(Slot& slot);
  void map(const Slot& slot);
  static int rights_of(const Slot& slot) { return slot.writable ? PROT_READ | PROT_WRITE : PROT_READ; }
  void vacate(Slot& slot, bool is_to_be_placed = false);
  void must(const Status& status) const {
    if (!status) options_.fatal(status);
  }

  const Options options_;
  cache::SharedCache& cache_;
  cache::Client& client_;  // under the mutex
  PlacedPages& pages_;
  const platform::File& pool_;
  const std::byte* const pool_base_;
  std::mutex mutex_;
  std::vector<Slot> slots_;
  uint64_t gone_ = 0;  // aliases, ever
  Atomic<uint32_t> used_{0};
};

}  // namespace spw::access
