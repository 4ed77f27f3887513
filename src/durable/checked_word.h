// A word that carries a check of itself, so that it can change by one store of 8 bytes and damage to it is found.
//
//     payload 47 | written 1 | check 16
//
// `written` is always 1: zeros, which a page that was lost reads as, are never such a word. The check is a CRC of the
// 48 bits below it, in which the place of the word is mixed: which region, what kind of word, and its number.
//
// What is found: any 5 bits that are flipped, any 16 neighbouring ones, zeros; the word of another number, if the
// numbers differ in their low 16 bits; of everything else all but one in 65,536. Not: an older contents of the same
// place.
// (Koopman and Chakravarty, Cyclic Redundancy Code Polynomial Selection, DSN 2004, for the polynomial: any two words of
// this length differ in at least 6 bits.)
#pragma once

#include <cstdint>

namespace spw::durable {

inline constexpr unsigned kPayloadBits = 47;
inline constexpr uint64_t kPayloadMask = (uint64_t{1} << kPayloadBits) - 1;
inline constexpr unsigned kCheckShift = 48;

// Where a word belongs.
enum class WordKind : uint64_t { kEpoch = 1, kSlot = 2, kChunk = 3 };
struct WordPlace {
  uint64_t region;  // its identity
  WordKind kind;
  uint64_t number;
};

uint64_t checked_word(uint64_t payload, const WordPlace& place);
bool is_checked_word(uint64_t word, const WordPlace& place);
constexpr uint64_t payload_of(uint64_t word) { return word & kPayloadMask; }

}  // namespace spw::durable
