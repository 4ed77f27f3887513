// The numbers that decide what an operation does. Each operation has a generator of its own, seeded by the run's seed
// and the operation's number, so that leaving other operations out changes nothing in it but what it finds.
#pragma once

#include <cstdint>

namespace torture {

inline uint64_t mixed(uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

inline uint64_t mixed(uint64_t a, uint64_t b) { return mixed(mixed(a) ^ (b * 0xD6E8FEB86659FD93u)); }

class Random {
 public:
  explicit Random(uint64_t seed) : state_(mixed(seed)) {}

  uint64_t next() { return mixed(state_++); }
  uint64_t below(uint64_t limit) { return limit < 2 ? 0 : next() % limit; }
  bool one_in(uint64_t n) { return below(n) == 0; }
  bool percent(unsigned chance) { return below(100) < chance; }

  template <typename T, unsigned long kCount>
  const T& of(const T (&choices)[kCount]) {
    return choices[below(kCount)];
  }

 private:
  uint64_t state_;
};

}  // namespace torture
