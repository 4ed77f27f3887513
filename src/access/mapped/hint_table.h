// The hint table (abi/hints.h) as the runtime writes it: one byte for each piece of 4 KiB of address space, which tells
// recompiled code whether to ask before an access.
//
// Blocks of managed space are kUnseen until they come in. The kernel gives zeros, which mean "go on", so each extent of
// 2 MiB is set to kUnseen when the first block of it comes in; before that its accesses fault.
// Threads: any. Ordering: none; a hint that is late or lost costs a call or a fault (abi/hints.h). Lifetime: the table
// is mapped by first/first.cc, for the life of the process.
// Limits: one byte for each 4 KiB of managed space that was touched, beside one for each 2 MiB.
#pragma once

#include <cstdint>

#include "abi/hints.h"
#include "base/atomic.h"
#include "base/ids.h"
#include "base/status.h"
#include "platform/memory.h"

namespace spw::access {

class HintTable {
 public:
  enum class Hint : int8_t {
    kUnseen = -1,       // not resident, or its next use has to be noticed
    kAlongUnseen = -2,  // as kUnseen, and kAlong
    kGo = 0,            // resident, referenced and dirty
    kClean = SPW_HINT_CLEAN,
    kLoaded = 2,  // as kClean to compiled code; came for a load, and was not stored to since
    kAlong =
        3,  // as kClean to compiled code; came along with a block that was stored to, and was not itself since
  };

  // Makes the parts that hold managed space's hints writable.
  static Result<HintTable> create(unsigned block_shift, uint64_t space_bytes);

  void set(BlockId block, Hint hint);
  // Of the block's first piece.
  Hint get(BlockId block) const {
    const uintptr_t address = address_of(block);
    return is_ready(address) ? static_cast<Hint>(byte_at(address).load_relaxed()) : Hint::kUnseen;
  }
  // A block that was dirty is clean now.
  void clear_dirty(BlockId block);

  static bool is_clean(Hint hint) { return hint > Hint::kGo; }
  static bool is_along(Hint hint) { return hint == Hint::kAlong || hint == Hint::kAlongUnseen; }
  // What compiled code asks of the byte.
  static bool wants_call(uintptr_t address, bool is_store) {
    const int8_t hint = byte_at(address).load_relaxed();
    return is_store ? hint != 0 : hint < 0;
  }

 private:
  using Byte = Atomic<int8_t>;

  static Byte& byte_at(uintptr_t address) {
    return *reinterpret_cast<Byte*>((address >> SPW_HINT_SHIFT) + SPW_HINT_OFFSET);
  }
  uintptr_t address_of(BlockId block) const;
  Atomic<uint8_t>& ready_at(uintptr_t address) const;
  bool is_ready(uintptr_t address) const { return ready_at(address).load_acquire() != 0; }
  void prepare_extent(uintptr_t address);

  unsigned block_shift_ = 12;
  platform::Mapping ready_;  // one Atomic<uint8_t> an extent
};

}  // namespace spw::access
