// Pages by userfaultfd: copied to their addresses and write-protected there by the kernel, on page tables alone.
//
// Threads: any. Lifetime: shorter than the descriptor's, whose way of delivery is settled before begin().
#pragma once

#include <memory>

#include "access/mapped/placed_pages.h"
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
  Status begin_writeback(std::byte* address, uint64_t bytes) override {
    return faults_.write_protect(address, bytes, true);
  }
  void end_writeback(std::byte*, uint64_t) override {}
  void release(std::span<const iovec> blocks) override { releaser_.release(blocks); }

 private:
  UserFaultPages(const platform::UserFault& faults, std::byte* base, uint64_t bytes)
      : faults_(faults), base_(base), bytes_(bytes) {}

  const platform::UserFault& faults_;
  std::byte* const base_;
  const uint64_t bytes_;
  platform::RangeReleaser releaser_;
};

}  // namespace spw::access
