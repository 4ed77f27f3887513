// Sums of blocks that came in dirty though nobody need have stored to them, of files that are mapped shared: of such a
// file the store gets what was stored and nothing else, so that what another process writes to it stays. A block that
// comes dirty costs no fault and no change of page tables at its first store. Whether there was one its sum tells when
// it is about to be written: where that has not changed, the block is clean, and is not written.
//
// Invariant: a frame's word has `summed` => the sum is of what the store has of its block. It is taken of what was read
//   before anybody can store to it, and given up (`summed` cleared) before the block is first written.
// Threads: note() who fills the frame, matches() the owner of its partition. Ordering: the end of the fill orders both.
// Limits: two contents have the same sum once in 2^64 (store/checked/checksum.h).
#pragma once

#include "base/ids.h"
#include "platform/memory.h"
#include "store/checked/checksum.h"

namespace spw::cache {

class FillSums {
 public:
  FillSums(uint32_t frame_count, uint64_t block_bytes);

  // Without memory for sums there are none: no block comes so.
  bool are_there() const { return sums_.bytes() > 0; }
  void note(FrameId frame, const std::byte* contents) { sums()[frame.value] = sum_of(contents); }
  // Of what may be stored to meanwhile, the sum of some mixture.
  bool matches(FrameId frame, const std::byte* contents) const {
    return sums()[frame.value] == sum_of(contents);
  }

 private:
  uint64_t* sums() const { return reinterpret_cast<uint64_t*>(sums_.data()); }
  uint64_t sum_of(const std::byte* contents) const;

  const uint64_t block_bytes_;
  const store::Checksum checksum_;
  store::ChecksumSecret secret_;
  platform::Mapping sums_;  // by frame; no memory before they are used
};

}  // namespace spw::cache
