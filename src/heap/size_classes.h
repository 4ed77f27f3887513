// Sizes of small objects: multiples of 16 up to 128, then four steps to each doubling (waste below 20 %).
//
//     class  0..7   16, 32, ... 128          class 8..   160, 192, 224, 256, 320, ...
//
// Limits: kSizeClassesMax classes, up to kSmallBytesMax bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace spw::heap {

inline constexpr uint64_t kSmallBytesMax = uint64_t{1} << kMaxBlockShift;
inline constexpr unsigned kSizeClassesMax = 64;

constexpr uint64_t class_bytes(unsigned index) {
  if (index < 8) return 16 * (uint64_t{index} + 1);
  unsigned doubling = (index - 8) / 4, step = (index - 8) % 4;
  return (uint64_t{128} << doubling) + (uint64_t{32} << doubling) * (step + 1);
}

// The smallest class that holds `bytes`, 1 <= bytes <= kSmallBytesMax.
constexpr unsigned class_of(uint64_t bytes) {
  if (bytes <= 128) return static_cast<unsigned>((bytes + 15) / 16) - 1;
  unsigned doubling = static_cast<unsigned>(std::bit_width(bytes - 1)) - 8;
  uint64_t base = uint64_t{128} << doubling, step = uint64_t{32} << doubling;
  return 8 + 4 * doubling + static_cast<unsigned>((bytes - base + step - 1) / step) - 1;
}

// The smallest class that holds `bytes` and whose objects, laid side by side from an aligned start, are all aligned.
constexpr unsigned class_of_aligned(uint64_t bytes, uint64_t alignment) {
  unsigned index = class_of(bytes < alignment ? alignment : bytes);
  while (class_bytes(index) % alignment != 0) ++index;
  return index;
}

static_assert(class_bytes(class_of(kSmallBytesMax)) == kSmallBytesMax);
static_assert(class_of(kSmallBytesMax) < kSizeClassesMax);

}  // namespace spw::heap
