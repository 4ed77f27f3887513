#define XXH_INLINE_ALL
#include "durable/checked_word.h"

#include <xxhash.h>

#include <array>

namespace spw::durable {

namespace {

constexpr uint64_t kWritten = uint64_t{1} << kPayloadBits;
constexpr uint16_t kPolynomial = 0x3D65;

constexpr std::array<uint16_t, 256> make_table() {
  std::array<uint16_t, 256> table{};
  for (unsigned byte = 0; byte < table.size(); ++byte) {
    auto rest = static_cast<uint16_t>(byte << 8);
    for (unsigned bit = 0; bit < 8; ++bit) {
      const bool carries = (rest & 0x8000) != 0;
      rest = static_cast<uint16_t>(rest << 1);
      if (carries) rest ^= kPolynomial;
    }
    table[byte] = rest;
  }
  return table;
}

constexpr std::array<uint16_t, 256> kTable = make_table();

// Of the 48 bits below the check, the highest first.
uint16_t crc_of(uint64_t word) {
  uint16_t crc = 0;
  for (unsigned shift = kCheckShift; shift > 0;) {
    shift -= 8;
    crc = static_cast<uint16_t>(crc << 8) ^ kTable[(crc >> 8 ^ word >> shift) & 0xFF];
  }
  return crc;
}

uint16_t check_of(uint64_t word, const WordPlace& place) {
  const uint64_t of[] = {place.region, static_cast<uint64_t>(place.kind)};
  // The number as it is: so it differs from each of the 65,535 that follow.
  return static_cast<uint16_t>(crc_of(word) ^ XXH3_64bits(of, sizeof of) ^ place.number);
}

}  // namespace

uint64_t checked_word(uint64_t payload, const WordPlace& place) {
  const uint64_t word = (payload & kPayloadMask) | kWritten;
  return word | uint64_t{check_of(word, place)} << kCheckShift;
}

bool is_checked_word(uint64_t word, const WordPlace& place) { return checked_word(word, place) == word; }

}  // namespace spw::durable
