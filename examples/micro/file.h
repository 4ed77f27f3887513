// Random reads of a file mapped into memory.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "common/options.h"
#include "common/random.h"
#include "micro/arrays.h"
#include "micro/harness.h"

namespace examples {

// Fills a file with words: the i-th is random_at(1, i).
inline void make_word_file(const std::string& path, uint64_t bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) fail("cannot write " + path);
  std::vector<uint64_t> piece(1 << 17);
  const uint64_t count = bytes / sizeof(uint64_t);
  for (uint64_t first = 0; first < count; first += piece.size()) {
    const uint64_t size = std::min<uint64_t>(piece.size(), count - first);
#pragma omp parallel for schedule(static)
    for (uint64_t i = 0; i < size; ++i) piece[i] = random_at(1, first + i);
    if (std::fwrite(piece.data(), sizeof(uint64_t), size, file) != size) fail("cannot write " + path);
  }
  if (std::fflush(file) != 0 || fsync(fileno(file)) != 0 || std::fclose(file) != 0)
    fail("cannot write " + path);
}

// Checks every word read against what the file was made of: a wrong block is found at once, and ends the
// program.
inline uint64_t sum_checked_at_random(const uint64_t* data, uint64_t count, uint64_t ops, uint64_t seed) {
  FastRandom random(seed);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < ops; ++i) {
    const uint64_t place = random.below(count);
    if (data[place] != random_at(1, place)) fail("a word of the file was read wrongly");
    sum += data[place];
  }
  return sum;
}

// `madvise_random`: tell the kernel that reads will be random. Rounds read different places. Sets settings.bytes.
inline Measured file_read(Settings& settings, const std::string& path, bool madvise_random) {
  const int file = open(path.c_str(), O_RDONLY);
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0) fail("cannot read " + path);
  const auto bytes = static_cast<uint64_t>(status.st_size);
  settings.bytes = bytes;
  void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) fail("cannot map " + path);
  if (madvise_random && madvise(mapped, bytes, MADV_RANDOM) != 0)
    fail("cannot advise the kernel about " + path);
  uint64_t round = 0;
  const auto prepare = [&] { ++round; };
  const Measured measured = measure(settings, settings.ops, prepare, [&](int thread) {
    const Share share(settings.ops, thread, settings.threads);
    return sum_checked_at_random(static_cast<const uint64_t*>(mapped), bytes / sizeof(uint64_t),
                                 share.end - share.begin, round << 32 | static_cast<uint64_t>(thread));
  });
  munmap(mapped, bytes);
  close(file);
  return measured;
}

}  // namespace examples
