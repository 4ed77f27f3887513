// The members of a balanced store, their slots, and which of them gets a chunk: those of the first tier that have room,
// each as much as it is fast (shares.h); when none of them has any, those of the next.
//
// Threads: take() and give_back() one at a time, under mutex(); the rest any. Lifetime: longer than what has its parts
//   under way.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/atomic.h"
#include "base/status.h"
#include "store/balanced/shares.h"
#include "store/balanced/slots.h"
#include "store/striped/stripe_member.h"

namespace spw::store {

struct PlaceMember {
  std::unique_ptr<StripeMember> part;
  uint32_t tier = 0;
  Slots slots;
  Atomic<uint64_t> given{0};  // chunks, ever
};

class Places {
 public:
  enum class Room : uint8_t { kWholeChunk, kPiece };
  struct Wanted {
    Room room = Room::kWholeChunk;
    uint64_t from = 0, bytes = 0;  // of the chunk, where only a piece of it is to have room
    uint32_t first_tier = 0, end_tier = UINT32_MAX;
    uint32_t but = 0;  // bit m: not member m
    bool even_failing = false;
  };
  struct Place {
    size_t member = 0;
    uint64_t slot = 0;
  };

  Places(size_t members, uint64_t chunk_bytes) : chunk_bytes_(chunk_bytes), shares_(members) {}
  // Tiers do not go down from one to the next.
  Status add(std::unique_ptr<Store> store, uint32_t tier);

  size_t count() const { return members_.size(); }
  uint32_t tiers() const { return members_.back()->tier + 1; }
  PlaceMember& operator[](size_t member) { return *members_[member]; }
  const PlaceMember& operator[](size_t member) const { return *members_[member]; }
  Store& store_of(size_t member) { return members_[member]->part->store(); }
  Shares& shares() { return shares_; }
  const Shares& shares() const { return shares_; }
  uint64_t chunk_bytes() const { return chunk_bytes_; }
  // What memory for requests to all of them has to be aligned to.
  uint64_t alignment_bytes() const;
  std::mutex& mutex() { return mutex_; }

  // A slot with what room is wanted, empty. Nothing: *error says why the last member that was asked has none; as it
  // was where none was asked. A member whose slot cannot be emptied counts as failing, and the slot is not used again,
  // so that one that is broken costs one slot in kFailingPauseNs, unless all that have room fail.
  std::optional<Place> take(const Wanted& wanted, int* error);
  void give_back(Place place, bool is_unclean) {
    members_[place.member]->slots.give_back(place.slot, is_unclean);
  }
  // Whether it is full, or its writes failed of late.
  bool is_refusing(size_t member) const;
  // Whether a chunk could go to another member, as far as is known.
  bool has_room_beside(size_t member) const;
  // 0, or what discarding what is there fails with.
  int empty(Place place);
  void in_child();

 private:
  uint32_t eligible(const Wanted& wanted, uint64_t now_ns) const;
  std::optional<Place> take_of(uint32_t eligible, const Wanted& wanted, uint64_t now_ns, int* error);

  const uint64_t chunk_bytes_;
  std::vector<std::unique_ptr<PlaceMember>> members_;
  Shares shares_;
  std::mutex mutex_;  // of the slots, choices, and words that become assigned
};

}  // namespace spw::store
