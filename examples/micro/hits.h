// Random reads of a mapped file, of which a chosen share goes to a part that fits in memory: 8 bytes at a time, or 4
// KiB pages read word by word. (TriCache, section 4.5: 8B Random and 4KB Random over memory hit rates.)
#pragma once

#include <cstdint>
#include <string>

#include "common/options.h"
#include "common/random.h"
#include "micro/file.h"
#include "micro/harness.h"

namespace examples {

struct Hits {
  uint64_t hot_bytes = 0;  // at the file's start
  uint64_t percent = 100;  // of the reads go there
  uint64_t read_bytes = 8;
};

constexpr uint64_t kWordsPerPage = 512;

inline uint64_t sum_page(const uint64_t* page) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < kWordsPerPage; ++i) sum += page[i];
  return sum;
}

// Places are uniform within the hot and within the cold part.
inline uint64_t sum_with_hits(const MappedWords& words, const Hits& hits, uint64_t ops, uint64_t seed) {
  const uint64_t pages = words.count() / kWordsPerPage;
  const uint64_t hot_pages = hits.hot_bytes / (kWordsPerPage * sizeof(uint64_t));
  const uint64_t* const data = words.data();
  FastRandom random(seed);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < ops; ++i) {
    const bool hot = random.below(100) < hits.percent;
    const uint64_t page = hot ? random.below(hot_pages) : hot_pages + random.below(pages - hot_pages);
    const uint64_t* const found = data + page * kWordsPerPage;
    sum += hits.read_bytes == sizeof(uint64_t) ? found[random.below(kWordsPerPage)] : sum_page(found);
  }
  return sum;
}

// The hot part is read once before anything is timed. Sets settings.bytes.
inline Measured file_hits(Settings& settings, const std::string& path, const Hits& hits,
                          bool madvise_random) {
  MappedWords words(path, false);
  settings.bytes = words.bytes();
  if (hits.percent > 100) fail("--hits is a percentage");
  if (hits.read_bytes != 8 && hits.read_bytes != 4096) fail("--read is 8 or 4096");
  if (hits.hot_bytes < 4096 || hits.hot_bytes >= words.bytes()) fail("--hot is a part of the file");
  uint64_t hot_sum = 0;
  for (uint64_t i = 0; i < hits.hot_bytes / sizeof(uint64_t); ++i) hot_sum += words.data()[i];
  if (madvise_random) words.expect_random_access();
  uint64_t round = 0;
  const auto prepare = [&] { ++round; };
  Measured measured = measure(settings, settings.ops, prepare, [&](int thread) {
    const Share share(settings.ops, thread, settings.threads);
    return sum_with_hits(words, hits, share.end - share.begin, round << 32 | static_cast<uint64_t>(thread));
  });
  measured.checksum += hot_sum;
  return measured;
}

}  // namespace examples
