// Markers: where a thread's uses of blocks are not seen (it faults, and only on what is not there), one block of each
// window that is read ahead for it is *parked*. Its contents are at hand but not in place, so that its first use is a
// fault, which says how far the stream has come and is served without a transfer.
//
// Invariants: a frame's word is parked, and not lifted (writeback/lifting.cc), <=> it is in parked_ (but between
//             finish_fill's steps)
//             parked_.size() <= parked_max_, and a share of the frames that may be in use
// The one that waits longest makes room for the next, and for whoever
// finds nothing else to evict: nobody may ever ask for it.
// Threads: the owner's.
#include <algorithm>
#include <cstring>

#include "cache/partition/partition.h"
#include "platform/futex.h"

namespace spw::cache {

// False: it has to be put in place like others.
bool Partition::park(Resident resident, const std::byte* contents) {
  const uint32_t most = std::min(parked_max_, organisation_->limit() / kParkedShare);
  if (most == 0) return false;
  while (parked_.size() >= most) unpark(parked_.front().resident.frame);
  std::byte* copy = context_.frames.take_staging(FrameSource::Staging::kBlock);
  if (!copy) return false;
  std::memcpy(copy, contents, context_.block_bytes());
  parked_.push_back({resident, copy});
  return true;
}

// Puts the contents in place. Whoever waits for them tells his stream
// of it; if nobody does, the first use goes unnoticed.
void Partition::unpark(FrameId frame) {
  if (word(frame).load_relaxed().is_lifted()) return writeback_.put_back(frame);
  const auto found = std::find_if(parked_.begin(), parked_.end(),
                                  [&](const Parked& parked) { return parked.resident.frame == frame; });
  if (found == parked_.end()) return;
  const Parked parked = *found;
  parked_.erase(found);
  context_.frames.install({&parked.resident, 1}, Contents::kFilled, parked.contents, false);
  context_.frames.give_back(FrameSource::Staging::kBlock, parked.contents);
  AtomicPinWord& pin_word = word(frame);
  const bool wanted = pin_word.load_acquire().refs() > 0;
  if (!wanted) organisation_->ahead_used();
  if (pin_word.end_filling(FrameState::kResident, 0, wanted ? 0 : PinWord::kAhead))
    platform::futex_wake_all(pin_word.futex_half());
}

}  // namespace spw::cache
