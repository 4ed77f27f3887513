// Pages by access rights, where userfaultfd is forbidden (containers, sandboxes): an absent block has none, a clean one
// may be read, and whoever does more gets SIGSEGV, which the engine serves. A block's contents are written to its
// pages while nobody may access them, through the process's own /proc/self/mem, and then the rights are given: so they
// are there all at once.
//
// What that costs: rights are of areas of the kernel, not of page tables, and a process has so many only
// (vm.max_map_count, 65530 by default). Neighbours with the same rights are one area. So rights are lent: when too many
// edges between areas are there, those of a whole window of blocks are taken back, the longest open one's, by one call.
// Its blocks stay in memory, and the first access to a run of them is a fault that gives the rights back (admit()).
// Code that was recompiled is affected little: what it misses stays loose (is_crowded()), and takes no area.
//
// Invariants
//   a block's byte has kOpen <=> its pages have the rights of its state, as far as the program leaves them to it, or are
//   about to: where the kernel had no area left they may have been given in part, and are given anew
//   without kOpen they have none; an absent block is never open
//   edges_ = the sum of the windows' edges >= edges between areas within managed space that rights have made
//   a block that is being written (kHeld) and a window that is kept open (holds > 0) are not closed: the kernel may be
//   accessing them, which would fail with EFAULT, or an alias is mapped in the window (loose_aliases.h), whose rights
//   are not known here
//   a block that is being written can be read, whatever the program has chosen, where it has to be (kLetRead), or if
//   program_protects() awaits that write (awaited_), which may know nothing of the new rights: either the write sees
//   them recorded (is_readable), or program_protects() sees the block being written, as with userfaultfd
//   (userfault_pages.h). What the program may not read is otherwise written from a copy, by /proc/self/mem
//   a block of a running thread's stack is not closed, either (kKeptOpen, until it is released): a handler of SIGSEGV
//   may have no other stack to run on, and the kernel's own stores to it would fail
//   all areas of the space share one anon_vma, since they were one when it was first touched: the kernel can always
//   merge them again
// Threads: any; a window's lock for its bytes and rights, then the queue's, or that of the program's rights and then
// that of what is awaited. No code that holds one of them touches managed memory, so a handler of SIGSEGV may take
// them. Limits: kWindowBlocks, the kernel's areas.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "access/mapped/placed_pages.h"
#include "access/mapped/program_rights.h"
#include "base/atomic.h"
#include "base/interval_map.h"
#include "platform/memory.h"
#include "platform/own_memory.h"
#include "platform/userfault.h"

namespace spw::access {

class ProtectedPages final : public PlacedPages {
 public:
  // [base, base + bytes) is reserved, without access. `edges_max`: 0 for half of the areas that a process may have.
  // Errors: of /proc/self/mem, which may be forbidden, too.
  static Result<std::unique_ptr<PlacedPages>> create(std::byte* base, uint64_t bytes, unsigned block_shift,
                                                     uint64_t edges_max = 0);

  Status begin(uint64_t used_bytes) override;
  void adopt(std::byte* address, uint64_t bytes) override;
  // The kernel gives zeros to who touches them.
  Status complete(std::byte*, const std::byte*, uint64_t) override { return {}; }
  Status renew(std::byte* address, uint64_t bytes) override;
  Status copy(std::byte* address, const std::byte* from, uint64_t bytes, bool is_writable) override;
  Status allow_stores(std::byte* address, uint64_t bytes) override;
  bool is_readable(const std::byte* address, uint64_t bytes) const override;
  Status copy_out(std::byte* to, const std::byte* address, uint64_t bytes) override {
    return memory_.read(to, address, bytes);
  }
  Status let_read(std::byte* address, uint64_t bytes) override;
  Status begin_writeback(std::byte* address, uint64_t bytes) override;
  void end_writeback(std::byte* address, uint64_t bytes) override;
  void release(std::span<const iovec> blocks) override;
  void keep_open(std::byte* address) override;
  void keep_open_until_released(std::byte* address, uint64_t bytes) override;
  void let_close(std::byte* address) override;
  Admitted admit(uintptr_t address, bool is_store) override;
  bool is_crowded() const override { return edges_.load_relaxed() > edges_max_ / 4 * 3; }
  int program_protects(uintptr_t address, uint64_t bytes, int protection,
                       const std::function<void()>& await_writes) override;
  bool program_allows(uintptr_t address, bool is_store) const override {
    return program_rights_.allow(address, is_store);
  }
  int program_rights(uintptr_t begin, uintptr_t* end) const override {
    return program_rights_.at(begin, end);
  }
  Status limit_alias(std::byte* address, uint64_t bytes, int rights) override {
    const auto begin = reinterpret_cast<uintptr_t>(address);
    return program_rights_.give(begin, begin + bytes, rights);
  }
  void forget_rights(uintptr_t begin, uintptr_t end) override;
  bool may_execute(uintptr_t address) const override;
  bool copies_pages_at_once() const override { return false; }
  void lock_rights_for_fork() override { program_rights_.lock_for_fork(); }
  void unlock_rights_after_fork() override { program_rights_.unlock_after_fork(); }
  Result<std::unique_ptr<PlacedPages>> inherit(const platform::UserFault& faults) override;

  // Which was found to do what is needed. Errors: of that.
  static Result<platform::OwnMemory> open_memory();

 private:
  static constexpr uint32_t kWindowBlocks = 512;
  static constexpr uint32_t kLocks = 64;
  // Of a block's byte. The rights are what PROT_* the state stands for.
  static constexpr uint8_t kAbsent = 0, kReadable = 1, kWritable = 3, kRights = 3, kOpen = 4, kHeld = 8,
                           kLetRead = 16, kKeptOpen = 32;
  // So many windows stay open whatever the number of edges: an instruction may need several.
  static constexpr uint64_t kOpenWindowsMin = 8;
  static constexpr int kClosedAtATime = 2, kRetriesMax = 1000;

  struct Window {
    uint32_t next;  // in the queue, by number
    uint32_t holds;
    uint16_t edges;
    bool is_queued;
  };
  // Blocks of one window.
  struct Piece {
    uint64_t window;
    uint32_t first;
    uint32_t count;
    uint32_t end() const { return first + count; }
  };

  ProtectedPages(std::byte* base, uint64_t bytes, unsigned block_shift, uint64_t edges_max,
                 platform::OwnMemory memory)
      : base_(base),
        bytes_(bytes),
        block_shift_(block_shift),
        edges_max_(edges_max),
        memory_(std::move(memory)) {}
  Status make_tables();
  Status reserve();
  // Calls visit(piece) for what of the range is in each window, until that returns an error.
  template <class Visit>
  Status for_each_piece(const void* address, uint64_t bytes, Visit visit) const;
  // Calls visit(run) for the longest runs of the piece's blocks that are there.
  template <class Visit>
  Status for_each_present(const Piece& piece, Visit visit) const;
  // Calls attempt() under the window's lock, and again for as long as the kernel has no area left and some can be had.
  template <class Attempt>
  Status with_room(uint64_t window, Attempt attempt);
  Status open_as(const Piece& piece, uint8_t state);
  Status give_rights(const Piece& piece, uint8_t state) const;
  Status give_open_rights(const Piece& piece) const;
  Status give_rights_anew(uintptr_t begin, uintptr_t end);
  using Parts = std::vector<std::pair<uintptr_t, uintptr_t>>;
  Parts note_awaited(uintptr_t begin, uintptr_t end);
  void drop_awaited(const Parts& parts);
  template <class Change>
  void change(const Piece& piece, Change change);
  uint32_t edges_in(const Piece& piece) const;
  bool is_over_limit();
  bool close_oldest();
  bool close(uint64_t number);
  void enqueue(uint64_t number);
  bool dequeue(uint64_t* number);

  uint8_t* states_of(uint64_t window) const {
    return reinterpret_cast<uint8_t*>(states_.data()) + window * kWindowBlocks;
  }
  Window& window(uint64_t number) const { return reinterpret_cast<Window*>(windows_.data())[number]; }
  std::mutex& lock_of(uint64_t number) { return locks_[number % kLocks].mutex; }
  std::byte* address_of(const Piece& piece) const {
    return base_ + ((piece.window * kWindowBlocks + piece.first) << block_shift_);
  }
  Piece piece_at(uintptr_t address) const;
  // The longest run around the block at `piece` whose bytes are the same.
  Piece alike_around(const Piece& piece) const;

  std::byte* const base_;
  const uint64_t bytes_;
  const unsigned block_shift_;
  const uint64_t edges_max_;
  platform::OwnMemory memory_;
  platform::Mapping states_, windows_;
  platform::Mapping scratch_;  // a page to try rights on
  ProgramRights program_rights_;
  // What was readable is noted, and new rights recorded, in one step; before all others.
  std::mutex choosing_mutex_;
  mutable std::mutex awaited_mutex_;
  // How many program_protects() wait for the writes of a page that was readable.
  IntervalMap<int> awaited_{0};
  platform::RangeReleaser releaser_;
  Atomic<bool> has_begun_{false};
  struct alignas(64) Lock {
    std::mutex mutex;
  } locks_[kLocks];
  alignas(64) Atomic<uint64_t> edges_{0};
  std::mutex closing_mutex_;    // before a window's
  Atomic<uint64_t> closed_{0};  // windows, ever
  std::mutex queue_mutex_;      // guards what follows
  uint64_t queued_ = 0;
  uint32_t oldest_ = 0, newest_ = 0;
};

}  // namespace spw::access
