// Random reads, and a sort in place, of a file mapped into memory.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <parallel/algorithm>
#include <string>
#include <vector>

#include "common/options.h"
#include "common/random.h"
#include "micro/arrays.h"
#include "micro/harness.h"
#include "micro/latencies.h"

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

// Checks every word read against what the file was made of: a wrong block is found at once, and ends the program.
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

// The same, and how long each read took. The clock is read by a call that might change the word, as far as the
// compiler knows, so the load stays between the two.
inline uint64_t sum_timed_at_random(const uint64_t* data, uint64_t count, uint64_t ops, uint64_t seed,
                                    Latencies& latencies) {
  FastRandom random(seed);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < ops; ++i) {
    const uint64_t place = random.below(count);
    const uint64_t start_ns = now_ns();
    const uint64_t word = data[place];
    latencies.add(now_ns() - start_ns);
    if (word != random_at(1, place)) fail("a word of the file was read wrongly");
    sum += word;
  }
  return sum;
}

// A file of words, mapped shared. Ends the program where that fails.
class MappedWords {
 public:
  MappedWords(const std::string& path, bool writable) {
    const int file = open(path.c_str(), writable ? O_RDWR : O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) fail("cannot open " + path);
    bytes_ = static_cast<uint64_t>(status.st_size);
    address_ = mmap(nullptr, bytes_, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file, 0);
    if (address_ == MAP_FAILED) fail("cannot map " + path);
    close(file);
  }
  ~MappedWords() { munmap(address_, bytes_); }
  MappedWords(const MappedWords&) = delete;
  MappedWords& operator=(const MappedWords&) = delete;

  void expect_random_access() {
    if (madvise(address_, bytes_, MADV_RANDOM) != 0) fail("cannot advise the kernel about a mapping");
  }

  uint64_t bytes() const { return bytes_; }
  uint64_t count() const { return bytes_ / sizeof(uint64_t); }
  uint64_t* data() const { return static_cast<uint64_t*>(address_); }

 private:
  uint64_t bytes_ = 0;
  void* address_ = nullptr;
};

// `madvise_random`: tell the kernel that reads will be random. `latencies`: of the reads of timed rounds; null: reads
// are not timed one by one. Rounds read different places. Sets settings.bytes.
inline Measured file_read(Settings& settings, const std::string& path, bool madvise_random,
                          Latencies* latencies) {
  MappedWords words(path, false);
  settings.bytes = words.bytes();
  if (madvise_random) words.expect_random_access();
  uint64_t round = 0;
  const auto prepare = [&] { ++round; };
  return measure(settings, settings.ops, prepare, [&](int thread) {
    const Share share(settings.ops, thread, settings.threads);
    const uint64_t ops = share.end - share.begin;
    const uint64_t seed = round << 32 | static_cast<uint64_t>(thread);
    if (latencies == nullptr || round <= static_cast<uint64_t>(settings.warmups))
      return sum_checked_at_random(words.data(), words.count(), ops, seed);
    Latencies mine;
    const uint64_t sum = sum_timed_at_random(words.data(), words.count(), ops, seed, mine);
#pragma omp critical
    latencies->add(mine);
    return sum;
  });
}

struct SumAndOrder {
  uint64_t sum = 0;
  uint64_t unordered = 0;
};

inline SumAndOrder sum_and_order(const uint64_t* data, uint64_t count) {
  uint64_t sum = 0;
  uint64_t unordered = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum, unordered)
  for (uint64_t i = 0; i < count; ++i) {
    sum += mix(data[i]);
    if (i > 0 && data[i] < data[i - 1]) ++unordered;
  }
  return {sum, unordered};
}

// libstdc++'s parallel quicksort, which needs no second array. Sets settings.bytes, rounds and warmups; checks order
// and, against the generator of the file, that no word was lost.
inline Measured file_sort(Settings& settings, const std::string& path) {
  MappedWords words(path, true);
  settings.bytes = words.bytes();
  settings.rounds = 1;
  settings.warmups = 0;
  const uint64_t count = words.count();
  omp_set_num_threads(settings.threads);
  Measured measured;
  measured.ops = count;
  print_timed_from();
  const double processor_start_s = processor_s();
  const double start_s = now_s();
  __gnu_parallel::sort(
      words.data(), words.data() + count,
      __gnu_parallel::quicksort_tag(static_cast<__gnu_parallel::_ThreadIndex>(settings.threads)));
  measured.round_s.push_back(now_s() - start_s);
  measured.processor_s = processor_s() - processor_start_s;
  const SumAndOrder result = sum_and_order(words.data(), count);
  uint64_t expected = 0;
#pragma omp parallel for schedule(static) reduction(+ : expected)
  for (uint64_t i = 0; i < count; ++i) expected += mix(random_at(1, i));
  if (result.unordered != 0 || result.sum != expected) fail("the file was sorted wrongly");
  measured.checksum = result.sum;
  return measured;
}

}  // namespace examples
