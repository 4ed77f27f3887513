// A value for every address: a few intervals that have one of their own, and the rest, which has the usual one.
//
// Invariant: the intervals do not overlap, are not empty, and none has the usual value.
// Threads: one at a time. Limits: each interval that differs is a node of the program's native heap.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

namespace spw {

template <class Value>
class IntervalMap {
 public:
  explicit IntervalMap(Value usual) : usual_(usual) {}

  bool is_empty() const { return parts_.empty(); }
  void clear() { parts_.clear(); }
  Value at(uintptr_t address) const {
    const auto part = part_with(address);
    return part == parts_.end() || part->first > address ? usual_ : part->second.value;
  }
  void set(uintptr_t begin, uintptr_t end, Value value) {
    if (begin >= end) return;
    split(begin);
    split(end);
    parts_.erase(parts_.lower_bound(begin), parts_.lower_bound(end));
    if (value != usual_) parts_.emplace(begin, Part{end, value});
  }
  // Each part of [begin, end) gets the value change(its value).
  template <class Change>
  void change(uintptr_t begin, uintptr_t end, Change change) {
    while (begin < end) {
      uintptr_t stop = end;
      const Value value = change(at(begin, &stop));
      set(begin, stop, value);
      begin = stop;
    }
  }
  // `*end` on return: how far beyond `begin` the value is the same, at most what it was.
  Value at(uintptr_t begin, uintptr_t* end) const {
    const auto part = part_with(begin);
    if (part == parts_.end()) return usual_;
    if (part->first > begin) {
      *end = std::min(*end, part->first);
      return usual_;
    }
    *end = std::min(*end, part->second.end);
    return part->second.value;
  }
  // Calls visit(begin, end, value) for the parts of [begin, end), in order, until it returns false: false then.
  template <class Visit>
  bool for_each(uintptr_t begin, uintptr_t end, Visit visit) const {
    while (begin < end) {
      uintptr_t stop = end;
      const Value value = at(begin, &stop);
      if (!visit(begin, stop, value)) return false;
      begin = stop;
    }
    return true;
  }

 private:
  struct Part {
    uintptr_t end;
    Value value;
  };
  using Parts = std::map<uintptr_t, Part>;

  // That holds `address`, or the first one behind it.
  typename Parts::const_iterator part_with(uintptr_t address) const {
    auto part = parts_.upper_bound(address);
    if (part != parts_.begin() && std::prev(part)->second.end > address) --part;
    return part;
  }
  // Afterwards no part reaches over `at`.
  void split(uintptr_t at) {
    const auto behind = parts_.lower_bound(at);
    if (behind == parts_.begin()) return;
    Part& part = std::prev(behind)->second;
    if (part.end > at) parts_.emplace(at, part).first->second.end = std::exchange(part.end, at);
  }

  const Value usual_;
  Parts parts_;  // by where they begin
};

}  // namespace spw
