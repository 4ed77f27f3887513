// Markers: where a thread's uses of blocks are not seen (it faults, and only on what is not there), one block of each window that
// is read ahead for it is *parked*. Its contents are at hand but not in place, so that its first use is a fault, which
// says how far the stream has come and is served without a transfer.
//
// Invariants: a frame's word is parked <=> it is in parked_ (but between finish_fill's steps)
//             parked_.size() <= parked_max_; the one that waits longest makes room for the next
// Threads: the owner's.
#include <algorithm>
#include <cstring>

#include "cache/partition/partition.h"
#include "platform/futex.h"

namespace spw::cache {

// False: it has to be put in place like others.
bool Partition::park(Resident resident, const std::byte* contents) {
  if (parked_max_ == 0) return false;
  if (parked_.size() == parked_max_) unpark(parked_.front().resident.frame, false);
  std::byte* copy = commons_.frames.take_staging(FrameSource::Staging::kBlock);
  if (!copy) return false;
  std::memcpy(copy, contents, commons_.block_bytes());
  parked_.push_back({resident, copy});
  return true;
}

// `wanted`: somebody waits for the block, whose use the stream will be told of.
void Partition::unpark(FrameId frame, bool wanted) {
  const auto found = std::find_if(parked_.begin(), parked_.end(),
                                  [&](const Parked& parked) { return parked.resident.frame == frame; });
  if (found == parked_.end()) return;
  const Parked parked = *found;
  parked_.erase(found);
  commons_.frames.install({&parked.resident, 1}, Contents::kFilled, parked.contents, false);
  commons_.frames.give_back(FrameSource::Staging::kBlock, parked.contents);
  if (!wanted) ahead_used();
  AtomicPinWord& pin_word = commons_.table.word(frame);
  if (pin_word.end_filling(FrameState::kResident, 0, wanted ? 0 : PinWord::kAhead))
    platform::futex_wake_all(pin_word.futex_half());
}

}  // namespace spw::cache
