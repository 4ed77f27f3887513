// How the miss ratio of a fully associative LRU cache falls with its size.
//
// Invariants: sizes rise strictly, from 0, where everything misses; miss ratios never rise and lie in [0, 1]
// Between two points the curve is a straight line; beyond the last one it stays as it is there.
// Threads: values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace spw::locality {

class MissRatioCurve {
 public:
  struct Point {
    double size;  // data that fit
    double miss_ratio;
  };

  // A sharp bend: from here on more memory brings less.
  struct Knee {
    double size;
    double miss_ratio;
    double drop;  // by how much the miss ratio falls on the steep piece that ends here
  };

  MissRatioCurve() : points_{{0, 1}} {}

  // Sizes have to rise; a point that is no larger than the last one is left out. A ratio above the last one's becomes
  // the last one's: estimates wobble, LRU does not (Mattson et al., 1970: its inclusion property).
  void add(double size, double miss_ratio);

  const std::vector<Point>& points() const { return points_; }
  double largest_size() const { return points_.back().size; }
  double at(double size) const;
  // The smallest size with at most this miss ratio; a negative number where there is none.
  double size_for(double miss_ratio) const;

  // Steep pieces of the curve, the steepest first, at most `count`: it is cut into kKneePieces of equal width up to
  // size_max, neighbouring ones that fall by `drop_min` or more each belong together. (The paper on adaptive software
  // caching, section III-C: rank the decreases, take the first few as candidates.)
  std::vector<Knee> knees(double size_max, size_t count, double drop_min = 0.01) const;
  static constexpr size_t kKneePieces = 200;

  // The mean of |at(s) - other.at(s)| over `steps` sizes at equal distances up to size_max.
  double mean_error(const MissRatioCurve& other, double size_max, size_t steps = 100) const;

 private:
  std::vector<Point> points_;
};

}  // namespace spw::locality
