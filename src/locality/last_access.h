// When each datum was last accessed: an open-addressing hash table with linear probing.
//
// Invariants: size() = data with an entry; at most half of the places are taken
//             a datum is found between its home place and the next empty one
// Threads: one at a time. Memory: 16 bytes a place. Limits: a datum is not kNone.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "locality/trace.h"

namespace spw::locality {

class LastAccess {
 public:
  static constexpr Datum kNone = UINT64_MAX;

  struct Entry {
    Datum datum = kNone;
    uint64_t time = 0;  // 0: it has none
  };

  LastAccess() : places_(kPlacesMin) {}

  uint64_t size() const { return size_; }

  // Notes that `datum` is accessed at `time`; returns when it was before, 0 for never.
  // What was before `oldest` counts as never, and its place is taken back when room is
  // needed: a table of the accesses since then only has as many places as those need.
  uint64_t exchange(Datum datum, uint64_t time, uint64_t oldest = 0) {
    SPW_CHECK(datum != kNone);
    Entry& entry = places_[place_of(datum)];
    if (entry.datum == datum) {
      const uint64_t before = std::exchange(entry.time, time);
      return before >= oldest ? before : 0;
    }
    entry = Entry{datum, time};
    if (++size_ * 2 > places_.size()) make_room(oldest);
    return 0;
  }

  // When it was last; it has no time from then on, as if it had never been accessed. 0: it has none.
  uint64_t take(Datum datum) {
    Entry& entry = places_[place_of(datum)];
    return entry.datum == datum ? std::exchange(entry.time, 0) : 0;
  }

  // Forgets all data for which keep(datum) is false.
  template <class Keep>
  void retain(Keep keep) {
    rebuild(places_.size(), [&](const Entry& entry) { return keep(entry.datum); });
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (const Entry& entry : places_)
      if (entry.datum != kNone) visit(entry);
  }

  uint64_t memory_bytes() const { return places_.capacity() * sizeof(Entry); }

 private:
  static constexpr size_t kPlacesMin = 16;

  // Of the datum's entry, or of the empty place where it belongs.
  size_t place_of(Datum datum) const {
    const size_t mask = places_.size() - 1;
    // The product's upper bits, which depend on all of the datum's.
    size_t place = datum * uint64_t{0x9E3779B97F4A7C15u} >> (64 - std::countr_zero(places_.size()));
    while (places_[place].datum != datum && places_[place].datum != kNone) place = (place + 1) & mask;
    return place;
  }

  // At most a quarter of the places are taken afterwards, or a datum
  // more, so this is rare even where little is forgotten.
  void make_room(uint64_t oldest) {
    size_t kept = 0;
    for (const Entry& entry : places_) kept += entry.datum != kNone && entry.time >= oldest;
    const size_t places = kept * 4 > places_.size() ? places_.size() * 2 : places_.size();
    rebuild(places, [oldest](const Entry& entry) { return entry.time >= oldest; });
  }

  template <class Keep>
  void rebuild(size_t places, Keep keep) {
    const std::vector<Entry> old = std::exchange(places_, std::vector<Entry>(places));
    size_ = 0;
    for (const Entry& entry : old) {
      if (entry.datum == kNone || !keep(entry)) continue;
      places_[place_of(entry.datum)] = entry;
      ++size_;
    }
  }

  std::vector<Entry> places_;
  uint64_t size_ = 0;
};

}  // namespace spw::locality
