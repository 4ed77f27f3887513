// Pages by userfaultfd: copied to their addresses and write-protected there by the kernel, on page tables alone. The
// access rights are the program's own. What it may not read is written to the store from a copy, which the kernel
// makes as for a debugger (/proc/self/mem). Only where there is no room for it, or the kernel refuses, can it be read
// meanwhile: by let_read() it is in `held_` until the write ends.
//
// A write that has found all readable knows of no rights, so program_protects() records the rights first, then waits
// for such writes, and only then takes the right to read away from what had it, but for what is held. Either the write
// sees the rights recorded (is_readable), or program_protects() sees the block being written: each stores, fences, and
// then looks.
// Several may wait for the same pages (`awaited_`): the last of them takes the right away.
// Invariant (under rights_mutex_): a page has the program's rights, and the right to read where it is held, or awaited
// and was readable before.
// Threads: any. Lifetime: shorter than the descriptor's, whose way of delivery is settled before begin().
#pragma once

#include <sys/mman.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "access/mapped/placed_pages.h"
#include "access/mapped/program_rights.h"
#include "platform/own_memory.h"
#include "platform/page_lifter.h"
#include "platform/userfault.h"

namespace spw::access {

class UserFaultPages final : public PlacedPages {
 public:
  // [base, base + bytes) is reserved, without access. What begin() will do is tried now, when an error can still be
  // told.
  static Result<std::unique_ptr<PlacedPages>> create(const platform::UserFault& faults, std::byte* base,
                                                     uint64_t bytes);

  Status begin(uint64_t used_bytes) override;
  void adopt(std::byte*, uint64_t) override {}
  Status complete(std::byte* address, const std::byte* zeros, uint64_t bytes) override {
    return faults_.copy(address, zeros, bytes, false);
  }
  Status renew(std::byte* address, uint64_t bytes) override;
  Status copy(std::byte* address, const std::byte* from, uint64_t bytes, bool is_writable) override {
    return faults_.copy(address, from, bytes, !is_writable);
  }
  Status allow_stores(std::byte* address, uint64_t bytes) override {
    return faults_.write_protect(address, bytes, false);
  }
  bool is_readable(const std::byte* address, uint64_t bytes) const override;
  Status copy_out(std::byte* to, const std::byte* address, uint64_t bytes) override;
  Status let_read(std::byte* address, uint64_t bytes) override;
  Status begin_writeback(std::byte* address, uint64_t bytes) override {
    return faults_.write_protect(address, bytes, true);
  }
  void end_writeback(std::byte* address, uint64_t bytes) override;
  // What the program may not read, the kernel may not, either.
  bool lifts(const std::byte*, uint64_t) const override {
    return lifter_.is_able() && !program_rights_.any();
  }
  bool lift(std::span<const iovec> pages, std::span<const iovec> to) override {
    return lifter_.lift(pages, to);
  }
  void release(std::span<const iovec> blocks) override { releaser_.release(blocks); }
  int program_protects(uintptr_t address, uint64_t bytes, int protection,
                       const std::function<void()>& await_writes) override;
  bool program_allows(uintptr_t address, bool is_store) const override {
    return program_rights_.allow(address, is_store);
  }
  int program_rights(uintptr_t begin, uintptr_t* end) const override {
    return program_rights_.at(begin, end);
  }
  bool may_execute(uintptr_t address) const override {
    return (program_rights_.at(address) & PROT_EXEC) != 0;
  }
  Status limit_alias(std::byte* address, uint64_t bytes, int rights) override;
  void forget_rights(uintptr_t begin, uintptr_t end) override;
  void lock_rights_for_fork() override { program_rights_.lock_for_fork(); }
  void unlock_rights_after_fork() override { program_rights_.unlock_after_fork(); }
  Result<std::unique_ptr<PlacedPages>> inherit(const platform::UserFault& faults) override;
  void lock_for_fork() override { rights_mutex_.lock(); }
  void unlock_after_fork() override { rights_mutex_.unlock(); }

 private:
  UserFaultPages(const platform::UserFault& faults, std::byte* base, uint64_t bytes)
      : faults_(faults), base_(base), bytes_(bytes), lifter_(releaser_) {}

  template <class Choose>
  Status give(uintptr_t begin, uintptr_t end, Choose choose) const;
  Status apply_rights(uintptr_t begin, uintptr_t end) const;
  Status let_read_for_now(uintptr_t begin, uintptr_t end, int chosen) const;
  bool is_held_until(uintptr_t from, uintptr_t* end) const;
  bool read_as_debugger(std::byte* to, const std::byte* from, uint64_t bytes);
  void let_go(uintptr_t begin, uintptr_t end);
  void record(uintptr_t begin, uintptr_t end, int rights);

  const platform::UserFault& faults_;
  std::byte* const base_;
  const uint64_t bytes_;
  platform::RangeReleaser releaser_;
  platform::PageLifter lifter_;
  platform::OwnMemory own_memory_;  // opened when it is needed, under the mutex
  std::mutex rights_mutex_;         // what is recorded is what the kernel has
  ProgramRights program_rights_;
  // What program_protects() awaits the writes of: what may be being written stays readable, whoever else takes rights.
  std::vector<std::pair<uintptr_t, uintptr_t>> awaited_;
  std::map<uintptr_t, uintptr_t> held_;  // what is being written and may have to be let read: begin -> end
};

}  // namespace spw::access
