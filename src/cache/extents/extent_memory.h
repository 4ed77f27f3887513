// Where extents are: slots, pieces of memory of kExtentBytes that are huge pages, and the extents' own addresses. The
// contents of one move between the two, by the kernel's page tables, without a copy.
//
// Life of a slot: [prepare -> (contents are read there) -> [place -> take_back]* -> ]* -> release.
// Threads: a slot, and the extent in it, are one thread's at a time (ExtentWord says whose). Different ones: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ids.h"

namespace spw::cache {

// A huge page of the kernel's.
inline constexpr unsigned kExtentShift = 21;
inline constexpr uint64_t kExtentBytes = uint64_t{1} << kExtentShift;

class ExtentMemory {
 public:
  virtual ~ExtentMemory() = default;
  virtual uint32_t slots() const = 0;
  // Blocks before this one have an address of their own.
  virtual BlockId end() const = 0;
  virtual std::byte* slot(uint32_t slot) const = 0;
  virtual std::byte* address_of(BlockId block) const = 0;
  // Gives the slot memory. False: a huge page is not to be had now.
  virtual bool prepare(uint32_t slot) = 0;
  virtual void release(uint32_t slot) = 0;
  // To the extent's own address, where nothing is. False: not there; the contents are in the slot still.
  virtual bool place(uint32_t slot, BlockId first) = 0;
  // Back into the slot. False: not now; the contents stay where they are.
  virtual bool take_back(uint32_t slot, BlockId first) = 0;
  // At the address of an extent that is placed, whatever rights the program has there.
  virtual void zero(std::byte* address, uint64_t bytes) = 0;
};

}  // namespace spw::cache
