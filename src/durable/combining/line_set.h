// A set of lines that is emptied in constant time: an open-addressing hash table, and a list of what is in it.
//
// A place of the table is taken only if it carries the number of the
// present filling, so all are free as soon as the number changes.
//
// Invariants: each line of the list stands between its home place and
// the next free one; at most half of the places are taken
// Threads: one at a time. Memory: 8 bytes a line and 32 to 64 for its place, for the fullest it ever was.
#pragma once

#include <bit>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "durable/combining/write_combiner.h"

namespace spw::durable {

class LineSet {
 public:
  LineSet() : places_(kPlacesMin) {}

  void insert(Line line) {
    Place& place = place_of(line);
    if (place.filling == filling_) return;
    place = Place{line, filling_};
    lines_.push_back(line);
    if (lines_.size() * 2 > places_.size()) grow();
  }
  // In the order in which they came, until sorted by who wants another.
  std::span<Line> lines() { return lines_; }
  void clear() {
    lines_.clear();
    ++filling_;
  }

 private:
  static constexpr size_t kPlacesMin = 64;
  struct Place {
    Line line = kNoLine;
    uint64_t filling = 0;
  };

  // Where the line is, or the free place where it belongs.
  Place& place_of(Line line) {
    // The product's upper bits, which depend on all of the line's.
    size_t place = line * uint64_t{0x9E3779B97F4A7C15u} >> (64 - std::countr_zero(places_.size()));
    while (places_[place].filling == filling_ && places_[place].line != line)
      place = (place + 1) & (places_.size() - 1);
    return places_[place];
  }

  void grow() {
    places_.assign(places_.size() * 2, Place{});
    for (const Line line : lines_) place_of(line) = Place{line, filling_};
  }

  std::vector<Line> lines_;
  std::vector<Place> places_;
  uint64_t filling_ = 1;
};

}  // namespace spw::durable
