// How the miss ratio of a fully associative LRU cache falls with its size.
//
// Invariants: sizes rise strictly, from 0, where everything misses; miss ratios never rise and lie in [0, 1]
// Between two points the curve is a straight line; beyond the last one it stays as it is there.
// Threads: values.
#pragma once

#include <vector>

namespace spw::locality {

class MissRatioCurve {
 public:
  struct Point {
    double size;  // data that fit
    double miss_ratio;
  };

  MissRatioCurve() : points_{{0, 1}} {}

  // Sizes have to rise; a point that is no larger than the last one is left out. A ratio above the last one's becomes
  // the last one's: estimates wobble, LRU does not (Mattson et al., 1970: its inclusion property).
  void add(double size, double miss_ratio);

  const std::vector<Point>& points() const { return points_; }
  double largest_size() const { return points_.back().size; }
  double at(double size) const;

 private:
  std::vector<Point> points_;
};

}  // namespace spw::locality
