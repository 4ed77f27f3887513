// Random numbers that are functions of their place: the n-th is computed from n alone, so that threads can
// produce any part of a sequence, and a checker can produce it again.
#pragma once

#include <cstdint>

namespace examples {

// A bijection of 64-bit numbers that spreads every input bit over all output bits.
inline uint64_t mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  return x;
}

inline uint64_t random_at(uint64_t seed, uint64_t place) {
  return mix(mix(seed + 0x9e3779b97f4a7c15u) + place * 0x9e3779b97f4a7c15u);
}

// A quick sequence for inner loops: a 64-bit linear congruential step, whose high half is used.
class FastRandom {
 public:
  explicit FastRandom(uint64_t seed) : state_(mix(seed) | 1) {}

  // A number below `bound` (at most 2^32), nearly uniform.
  uint64_t below(uint64_t bound) {
    state_ = state_ * 0x5851f42d4c957f2du + 0x14057b7ef767814fu;
    return ((state_ >> 32) * bound) >> 32;
  }

 private:
  uint64_t state_;
};

}  // namespace examples
