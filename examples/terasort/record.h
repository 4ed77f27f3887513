// The sort benchmark's 100-byte record (sortbenchmark.org), its order, a checksum, and a generator of our own.
//
//   bytes  0..9    key: random
//          10..11  00 11
//          12..43  the record's number, 32 hexadecimal digits
//          44..47  88 99 aa bb
//          48..95  filler: twelve random hexadecimal digits, each four times
//          96..99  cc dd ee ff
//
// Key and filler are functions of (seed, number): any thread can make any record, and the checksum of a whole
// file is known without the file.
#pragma once

#include <cstdint>
#include <cstring>

#include "common/random.h"

namespace examples {

constexpr uint64_t kKeyBytes = 10;

struct Record {
  unsigned char key[kKeyBytes];
  unsigned char payload[90];
};
static_assert(sizeof(Record) == 100 && alignof(Record) == 1, "records lie in files as they lie in memory");

inline uint64_t key_head(const Record& record) {
  uint64_t head;
  std::memcpy(&head, record.key, sizeof head);
  return __builtin_bswap64(head);
}

inline uint16_t key_tail(const Record& record) {
  uint16_t tail;
  std::memcpy(&tail, record.key + 8, sizeof tail);
  return __builtin_bswap16(tail);
}

struct KeyLess {
  bool operator()(const Record& a, const Record& b) const {
    const uint64_t x = key_head(a);
    const uint64_t y = key_head(b);
    return x != y ? x < y : key_tail(a) < key_tail(b);
  }
};

inline void make_record(uint64_t seed, uint64_t number, Record* record) {
  static const char kDigits[] = "0123456789ABCDEF";
  const uint64_t head = random_at(seed, 2 * number);
  const uint64_t rest = random_at(seed, 2 * number + 1);
  std::memcpy(record->key, &head, 8);
  std::memcpy(record->key + 8, &rest, 2);
  unsigned char* p = record->payload;
  p[0] = 0x00;
  p[1] = 0x11;
  std::memset(p + 2, '0', 16);
  for (int digit = 0; digit < 16; ++digit) p[18 + digit] = kDigits[number >> (60 - 4 * digit) & 15];
  const unsigned char middle[4] = {0x88, 0x99, 0xaa, 0xbb};
  std::memcpy(p + 34, middle, 4);
  for (int digit = 0; digit < 12; ++digit)
    std::memset(p + 38 + 4 * digit, kDigits[rest >> (16 + 4 * digit) & 15], 4);
  const unsigned char end[4] = {0xcc, 0xdd, 0xee, 0xff};
  std::memcpy(p + 86, end, 4);
}

// The sum of this over all records does not depend on their order, and changes with any byte of any of them.
inline uint64_t record_hash(const Record& record) {
  unsigned char bytes[104] = {};
  std::memcpy(bytes, &record, sizeof record);
  uint64_t hash = 0x243f6a8885a308d3u;
  for (int i = 0; i < 104; i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes + i, 8);
    const unsigned __int128 product = static_cast<unsigned __int128>(hash ^ word) * 0x9e3779b97f4a7c15u;
    hash = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ hash >> 29;
  }
  return hash;
}

}  // namespace examples
