#include "store/balanced/places.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/units.h"
#include "platform/time.h"
#include "store/balanced/chunk_table.h"

namespace spw::store {

Status Places::add(std::unique_ptr<Store> store, uint32_t tier) {
  auto member = std::make_unique<PlaceMember>();
  member->tier = tier;
  const uint64_t slots = std::min(store->size_bytes() / chunk_bytes_, ChunkWord::kSlotsMax);
  if (Status status = member->slots.allocate(slots); !status) return status;
  auto started = StripeMember::start(std::move(store));
  if (!started) return started.status();
  member->part = std::move(*started);
  members_.push_back(std::move(member));
  return {};
}

uint32_t Places::eligible(const Wanted& wanted, uint64_t now_ns) const {
  uint32_t found = 0;
  for (size_t i = 0; i < members_.size(); ++i) {
    if (wanted.room == Room::kPiece ? shares_.has_no_room(i, now_ns) : shares_.is_full(i, now_ns)) continue;
    if (shares_.is_failing(i, now_ns) && !wanted.even_failing) continue;
    found |= uint32_t{1} << i;
  }
  return found & ~wanted.but;
}

uint64_t Places::alignment_bytes() const {
  uint64_t most = kMmuPageBytes;
  for (const auto& member : members_) most = std::max(most, member->part->store().alignment_bytes());
  return most;
}

bool Places::is_refusing(size_t member) const {
  const uint64_t now_ns = platform::monotonic_ns();
  return shares_.is_full(member, now_ns) || shares_.is_failing(member, now_ns);
}

bool Places::has_room_beside(size_t member) const {
  uint32_t others = eligible({.but = uint32_t{1} << member}, platform::monotonic_ns());
  for (size_t i = 0; i < members_.size(); ++i)
    if (members_[i]->slots.taken() == members_[i]->slots.count()) others &= ~(uint32_t{1} << i);
  return others != 0;
}

std::optional<Places::Place> Places::take(const Wanted& wanted, int* error) {
  const uint64_t now_ns = platform::monotonic_ns();
  const uint32_t open = eligible(wanted, now_ns);
  for (uint32_t tier = wanted.first_tier; tier < std::min(wanted.end_tier, tiers()); ++tier) {
    uint32_t of_tier = 0;
    for (size_t i = 0; i < members_.size(); ++i)
      if (members_[i]->tier == tier) of_tier |= uint32_t{1} << i;
    if (const auto place = take_of(open & of_tier, wanted, now_ns, error)) return place;
  }
  return std::nullopt;
}

// On the member that is to get it, or the next one that has room.
std::optional<Places::Place> Places::take_of(uint32_t eligible, const Wanted& wanted, uint64_t now_ns,
                                             int* error) {
  while (const auto index = shares_.choose(eligible)) {
    eligible &= ~(uint32_t{1} << *index);
    PlaceMember& member = *members_[*index];
    const auto taken = member.slots.take();
    if (!taken) continue;
    const Place place{*index, taken->slot};
    if (taken->is_unclean && empty(place) != 0) {
      *error = EIO;
      // The attempt may have taken long.
      shares_.note_failing(*index, platform::monotonic_ns());
      if (wanted.even_failing) give_back(place, true);
      continue;
    }
    const bool whole = wanted.room == Room::kWholeChunk;
    const uint64_t from = taken->slot * chunk_bytes_ + (whole ? 0 : wanted.from);
    const Status reserved = member.part->store().reserve(from, whole ? chunk_bytes_ : wanted.bytes);
    if (reserved) return place;
    *error = reserved.error();
    give_back(place, false);
    if (is_no_room(reserved.error())) shares_.note_full(*index, now_ns, !whole);
  }
  return std::nullopt;
}

int Places::empty(Place place) {
  Request request;
  request.op = Op::kDiscard;
  request.offset_bytes = place.slot * chunk_bytes_;
  request.discard_bytes = chunk_bytes_;
  return store_of(place.member).transfer(request).error();
}

void Places::in_child() {
  new (&mutex_) std::mutex;
  shares_.in_child();
  for (auto& member : members_) {
    member->slots.in_child();
    member->part->in_child();
  }
}

}  // namespace spw::store
