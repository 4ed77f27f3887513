// Memory of extents in the mapped engine: huge pages that userfaultfd moves between slots, which lie outside of managed
// space, and the extents' own addresses there.
//
// Hints: what is placed may be accessed in every way, so its hints say so; before it leaves they say `unseen`.
// A move is a microsecond only where the page is huge and no page table is left at the address: the memory that was
//   there is given up first, which takes the table away. Where small pages had to be moved all the same, the slot's
//   page has been split, and is made anew when it is prepared again.
// Threads: as ExtentMemory. Lifetime: faults and hints outlive this.
#pragma once

#include <memory>
#include <vector>

#include "access/mapped/hint_table.h"
#include "cache/extents/extent_memory.h"
#include "platform/memory.h"
#include "platform/own_memory.h"
#include "platform/userfault.h"

namespace spw::access {

class MovedExtents final : public cache::ExtentMemory {
 public:
  // ENOTSUP: this kernel does not move memory (Linux 6.8), or has no huge pages for who asks for them. `base`: the
  // address of block 0; blocks before `end` have addresses.
  static Result<std::unique_ptr<MovedExtents>> create(const platform::UserFault& faults, HintTable& hints,
                                                      std::byte* base, unsigned block_shift, BlockId end,
                                                      uint32_t slots);

  uint32_t slots() const override { return slots_; }
  BlockId end() const override { return end_; }
  std::byte* slot(uint32_t slot) const override {
    return memory_.data() + uint64_t{slot} * cache::kExtentBytes;
  }
  std::byte* address_of(BlockId block) const override { return base_ + (block.value << block_shift_); }
  bool prepare(uint32_t slot) override;
  void release(uint32_t slot) override;
  bool place(uint32_t slot, BlockId first) override;
  bool take_back(uint32_t slot, BlockId first) override;
  void zero(std::byte* address, uint64_t bytes) override { platform::zero_as_debugger(address, bytes); }

 private:
  MovedExtents(const platform::UserFault& faults, HintTable& hints, std::byte* base, unsigned block_shift,
               BlockId end, uint32_t slots)
      : faults_(faults), hints_(hints), base_(base), block_shift_(block_shift), end_(end), slots_(slots) {}
  void set_hints(BlockId first, HintTable::Hint hint);
  bool move_whole(std::byte* to, std::byte* from);

  const platform::UserFault& faults_;
  HintTable& hints_;
  std::byte* const base_;
  const unsigned block_shift_;
  const BlockId end_;
  const uint32_t slots_;
  platform::Mapping memory_;
  std::vector<uint8_t> is_registered_;  // by slot; the mover's
};

}  // namespace spw::access
