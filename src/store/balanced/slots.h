// The slots of one member of a balanced store: which are taken, and which of the others hold something still.
//
//   free     never taken, or given back empty
//   unclean  free, but with contents: to be discarded before it is taken. In a forked child that has its parent's slots
//            all free ones count as that: what the parent wrote there since the fork the child does not know of
//   taken    a chunk's, or on its way there or back
//
// The lowest free one is taken, so that a spill file stays short and its chunks lie in the order they came in.
// Threads: one at a time (the store's lock). A fork in the middle of take() or give_back() costs the child a slot at
//   most: a bit is set before the slot's number is used, and cleared after. Limits: ChunkWord::kSlotsMax slots.
#pragma once

#include <cstdint>
#include <optional>

#include "base/atomic.h"
#include "base/status.h"
#include "platform/memory.h"

namespace spw::store {

class Slots {
 public:
  struct Taken {
    uint64_t slot = 0;
    bool is_unclean = false;
  };
  Status allocate(uint64_t slots);

  std::optional<Taken> take();
  void give_back(uint64_t slot, bool is_unclean);
  uint64_t count() const { return slots_; }
  uint64_t taken() const { return taken_.load_relaxed(); }  // any thread
  void in_child() { all_unclean_ = true; }

 private:
  static constexpr uint64_t kBitsPerWord = 64;
  uint64_t words() const { return (slots_ + kBitsPerWord - 1) / kBitsPerWord; }
  uint64_t* taken_bits() const { return reinterpret_cast<uint64_t*>(memory_.data()); }
  uint64_t* unclean_bits() const { return taken_bits() + words(); }

  platform::Mapping memory_;
  uint64_t slots_ = 0;
  uint64_t first_word_ = 0;  // no free one in a word before
  bool all_unclean_ = false;
  Atomic<uint64_t> taken_{0};
};

}  // namespace spw::store
