// Edges of an R-MAT graph with the parameters of Graph500 (a = .57, b = c = .19), each a function of its number alone.
#pragma once

#include <cstdint>

#include "common/random.h"

namespace examples {

using Vertex = uint32_t;
constexpr Vertex kNoVertex = ~Vertex{0};

struct Edge {
  Vertex from;
  Vertex to;
};

class Rmat {
 public:
  // 2^scale vertices. scale <= 31.
  Rmat(int scale, uint64_t seed) : scale_(scale), mask_((Vertex{1} << scale) - 1), seed_(seed) {}

  Edge edge(uint64_t number) const {
    constexpr uint32_t kA = 37355;          // .57 of 2^16
    constexpr uint32_t kAB = kA + 12452;    // + .19
    constexpr uint32_t kABC = kAB + 12452;  // + .19
    uint64_t random = 0;
    Vertex from = 0;
    Vertex to = 0;
    for (int level = 0; level < scale_; ++level) {
      if (level % 4 == 0) random = random_at(seed_, number * 8 + static_cast<uint64_t>(level / 4));
      const uint32_t draw = random & 0xffff;
      random >>= 16;
      from = from << 1 | static_cast<Vertex>(draw >= kAB);
      to = to << 1 | static_cast<Vertex>((draw >= kA && draw < kAB) || draw >= kABC);
    }
    return {scramble(from), scramble(to)};
  }

 private:
  // A bijection of the vertices, so that a vertex's number says nothing about its degree.
  Vertex scramble(Vertex v) const {
    const int half = scale_ / 2 + 1;
    v = (v * 0x9e3779b1u + 0x7f4a7c15u) & mask_;
    v ^= v >> half;
    v = (v * 0x85ebca6bu + 0x165667b1u) & mask_;
    v ^= v >> half;
    return v;
  }

  const int scale_;
  const Vertex mask_;
  const uint64_t seed_;
};

}  // namespace examples
