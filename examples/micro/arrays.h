// Micro benchmarks on one big array of 64-bit words: reading in order, reading and updating at random, both beside each
// other, chasing pointers.
#pragma once

#include <cstdint>
#include <memory>

#include "common/random.h"
#include "micro/harness.h"

namespace examples {

using Words = std::unique_ptr<uint64_t[]>;

// words[i] = random_at(seed, i)
inline Words random_words(uint64_t count, int threads) {
  Words words(new uint64_t[count]);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (uint64_t i = 0; i < count; ++i) words[i] = random_at(1, i);
  return words;
}

inline Measured sequential_sum(const Settings& settings) {
  const uint64_t count = settings.bytes / sizeof(uint64_t);
  const Words words = random_words(count, settings.threads);
  return measure(settings, count, [&](int thread) {
    const Share share(count, thread, settings.threads);
    const uint64_t* const data = words.get();
    uint64_t sum = 0;
    for (uint64_t i = share.begin; i < share.end; ++i) sum += data[i];
    return sum;
  });
}

// Sums `ops` words at random places of [data, data + count).
inline uint64_t sum_at_random(const uint64_t* data, uint64_t count, uint64_t ops, uint64_t seed) {
  FastRandom random(seed);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < ops; ++i) sum += data[random.below(count)];
  return sum;
}

inline Measured random_read(const Settings& settings) {
  const uint64_t count = settings.bytes / sizeof(uint64_t);
  const Words words = random_words(count, settings.threads);
  return measure(settings, settings.ops, [&](int thread) {
    const Share share(settings.ops, thread, settings.threads);
    return sum_at_random(words.get(), count, share.end - share.begin, static_cast<uint64_t>(thread));
  });
}

// Every thread updates words of its own part: no update is lost.
inline Measured random_update(const Settings& settings) {
  const uint64_t count = settings.bytes / sizeof(uint64_t);
  const Words words = random_words(count, settings.threads);
  return measure(settings, settings.ops, [&](int thread) {
    const Share part(count, thread, settings.threads);
    const Share share(settings.ops, thread, settings.threads);
    uint64_t* const data = words.get() + part.begin;
    FastRandom random(static_cast<uint64_t>(thread));
    uint64_t last = 0;
    for (uint64_t i = share.begin; i < share.end; ++i) last = data[random.below(part.end - part.begin)] += i;
    return last;
  });
}

// As in a table that is scanned to count into another: every thread reads its part of the first half in order, and
// meanwhile updates words of its part of the second half, spread evenly over the scan.
inline Measured scan_and_update(const Settings& settings) {
  const uint64_t half = settings.bytes / sizeof(uint64_t) / 2;
  const Words words = random_words(2 * half, settings.threads);
  return measure(settings, settings.ops, [&](int thread) {
    const Share part(half, thread, settings.threads);
    const Share share(settings.ops, thread, settings.threads);
    const uint64_t updates = share.end - share.begin, length = part.end - part.begin;
    const uint64_t* const scanned = words.get() + part.begin;
    uint64_t* const updated = words.get() + half + part.begin;
    FastRandom random(static_cast<uint64_t>(thread));
    uint64_t sum = 0;
    for (uint64_t update = 0; update < updates; ++update) {
      const Share piece(length, static_cast<int>(update), static_cast<int>(updates));
      for (uint64_t i = piece.begin; i < piece.end; ++i) sum += scanned[i];
      sum += updated[random.below(length)] += update;
    }
    return sum;
  });
}

// Every thread follows one cycle through all words of its own part.
inline Measured chase(const Settings& settings) {
  const uint64_t count = settings.bytes / sizeof(uint64_t);
  const Words next(new uint64_t[count]);
#pragma omp parallel num_threads(settings.threads)
  {
    const Share part(count, omp_get_thread_num(), settings.threads);
    for (uint64_t i = part.begin; i < part.end; ++i) next[i] = i;
    FastRandom random(static_cast<uint64_t>(omp_get_thread_num()));
    for (uint64_t i = part.end - 1; i > part.begin; --i) {  // Sattolo's shuffle: a single cycle
      const uint64_t other = part.begin + random.below(i - part.begin);
      const uint64_t here = next[i];
      next[i] = next[other];
      next[other] = here;
    }
  }
  return measure(settings, settings.ops, [&](int thread) {
    const Share part(count, thread, settings.threads);
    const Share share(settings.ops, thread, settings.threads);
    const uint64_t* const data = next.get();
    uint64_t place = part.begin;
    for (uint64_t i = share.begin; i < share.end; ++i) place = data[place];
    return place;
  });
}

}  // namespace examples
