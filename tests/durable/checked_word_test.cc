#include "durable/checked_word.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "base/rng.h"

namespace spw::durable {
namespace {

constexpr WordPlace kPlace{0x1234567890ABCDEF, WordKind::kChunk, 7};

TEST(CheckedWord, has_its_payload_and_is_never_zeros) {
  Rng rng(1);
  for (unsigned i = 0; i < 100'000; ++i) {
    const uint64_t payload = i == 0 ? 0 : i == 1 ? kPayloadMask : rng.next() & kPayloadMask;
    const WordPlace place{rng.next(), WordKind::kSlot, i};
    const uint64_t word = checked_word(payload, place);
    ASSERT_NE(word, 0u);
    ASSERT_EQ(payload_of(word), payload);
    ASSERT_TRUE(is_checked_word(word, place));
    ASSERT_FALSE(is_checked_word(0, place));
  }
}

// The check is linear: if no set of at most five bits can be flipped in one word, none can in any. That of a flipped
// bit is `signs`; two sets of two or three that cancel out would be a word that passes.
TEST(CheckedWord, up_to_five_flipped_bits_are_found) {
  const uint64_t word = checked_word(0x123456789ABC, kPlace);
  std::array<uint64_t, 64> signs;
  for (unsigned bit = 0; bit < 64; ++bit) {
    const uint64_t flipped = word ^ uint64_t { 1 } << bit;
    EXPECT_FALSE(is_checked_word(flipped, kPlace)) << bit;
    // What the check would have to be, against what it is. The bit that says that the word was written has no word in
    // which it is 0: without it nothing passes.
    signs[bit] = bit == kPayloadBits ? 0 : (checked_word(flipped, kPlace) ^ flipped) >> kCheckShift;
  }
  std::map<uint64_t, uint64_t> pairs;  // sign -> bits
  for (unsigned a = 0; a < 64; ++a)
    for (unsigned b = a + 1; b < 64; ++b) {
      if (a == kPayloadBits || b == kPayloadBits) continue;
      const uint64_t bits = uint64_t{1} << a | uint64_t{1} << b;
      ASSERT_NE(signs[a] ^ signs[b], 0u);
      ASSERT_TRUE(pairs.emplace(signs[a] ^ signs[b], bits).second) << "four bits";
    }
  for (const auto& [sign, bits] : pairs)
    for (unsigned c = 0; c < 64; ++c) {
      if (c == kPayloadBits || (bits >> c & 1) != 0) continue;
      ASSERT_NE(sign ^ signs[c], 0u) << "three bits";
      const auto other = pairs.find(sign ^ signs[c]);
      if (other == pairs.end()) continue;
      ASSERT_NE(other->second & (bits | uint64_t{1} << c), 0u) << "five bits";
    }
}

TEST(CheckedWord, another_numbers_or_kinds_or_regions_word_is_none) {
  const uint64_t word = checked_word(42, kPlace);
  for (uint64_t number = 0; number < 65'536; ++number)
    ASSERT_EQ(is_checked_word(word, {kPlace.region, kPlace.kind, number}), number == kPlace.number);
  EXPECT_FALSE(is_checked_word(word, {kPlace.region, WordKind::kSlot, kPlace.number}));
  uint64_t passed = 0;
  for (uint64_t region = 0; region < 65'536; ++region)
    passed += is_checked_word(word, {region, kPlace.kind, kPlace.number});
  EXPECT_LT(passed, 10u) << "one is to be expected";
}

}  // namespace
}  // namespace spw::durable
