// A small, fast, seedable generator (xorshift64*) for tests, jitter and sampling. Not for secrets.
#pragma once

#include <cstdint>

namespace spw {

class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 0x632BE59BD9B4E019u) {}
  uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1Du;
  }
  // Uniform in [0, bound), bound > 0; the bias is below 2^-32 for bounds under 2^32.
  uint64_t below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }

 private:
  uint64_t state_;
};

}  // namespace spw
