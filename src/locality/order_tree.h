// How many of some marked times lie before another: a Fenwick tree over times 1 to N.
//
// Threads: none. Memory: a word for each time. Both operations take logarithmic time.
#pragma once

#include <cstdint>
#include <vector>

namespace spw::locality {

class OrderTree {
 public:
  explicit OrderTree(uint64_t times) : sums_(times + 1) {}

  uint64_t times() const { return sums_.size() - 1; }
  void mark(uint64_t time) { add(time, 1); }
  void unmark(uint64_t time) { add(time, -1); }
  // Marked times up to this one.
  uint64_t up_to(uint64_t time) const {
    int64_t sum = 0;
    for (; time > 0; time &= time - 1) sum += sums_[time];
    return static_cast<uint64_t>(sum);
  }

 private:
  void add(uint64_t time, int64_t by) {
    for (; time < sums_.size(); time += time & -time) sums_[time] += by;
  }

  std::vector<int64_t> sums_;
};

}  // namespace spw::locality
