// Micro benchmarks on what programs do most with memory: sorting, probing the hash table of a join, finding in a map.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "common/random.h"
#include "micro/arrays.h"
#include "micro/harness.h"
#include "terasort/record.h"

namespace examples {

// Every thread sorts its own part with std::sort.
inline Measured sort_words(const Settings& settings) {
  const uint64_t count = settings.bytes / sizeof(uint64_t);
  const Words words(new uint64_t[count]);
  const auto prepare = [&] {
#pragma omp parallel for schedule(static) num_threads(settings.threads)
    for (uint64_t i = 0; i < count; ++i) words[i] = random_at(1, i);
  };
  return measure(settings, count, prepare, [&](int thread) {
    const Share part(count, thread, settings.threads);
    std::sort(words.get() + part.begin, words.get() + part.end);
    return words[part.begin + (part.end - part.begin) / 2];
  });
}

inline Measured sort_records(const Settings& settings) {
  const uint64_t count = settings.bytes / sizeof(Record);
  const std::unique_ptr<Record[]> records(new Record[count]);
  const auto prepare = [&] {
#pragma omp parallel for schedule(static) num_threads(settings.threads)
    for (uint64_t i = 0; i < count; ++i) make_record(1, i, &records[i]);
  };
  return measure(settings, count, prepare, [&](int thread) {
    const Share part(count, thread, settings.threads);
    std::sort(records.get() + part.begin, records.get() + part.end, KeyLess());
    return key_head(records[part.begin + (part.end - part.begin) / 2]);
  });
}

// The probe side of a hash join: a column of keys against an open-addressing table, half full, of (key,
// value) pairs. Every key is found. The table takes four fifths of the data, the column the rest.
class JoinTable {
 public:
  struct Slot {
    uint64_t key;  // 0: empty
    uint64_t value;
  };

  JoinTable(uint64_t slots, int threads) : mask_(slots - 1), slots_(new Slot[slots]), keys_(slots / 2) {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (uint64_t i = 0; i < slots; ++i) slots_[i] = Slot{0, 0};
    for (uint64_t i = 0; i < keys_; ++i) {
      uint64_t place = mix(i + 1) & mask_;
      while (slots_[place].key != 0) place = (place + 1) & mask_;
      slots_[place] = Slot{i + 1, i};
    }
  }

  // Keys are 1 .. keys().
  uint64_t keys() const { return keys_; }

  uint64_t value_of(uint64_t key) const {
    uint64_t place = mix(key) & mask_;
    while (slots_[place].key != key) place = (place + 1) & mask_;
    return slots_[place].value;
  }

 private:
  const uint64_t mask_;
  const std::unique_ptr<Slot[]> slots_;
  const uint64_t keys_;
};

inline Measured join_probe(const Settings& settings) {
  uint64_t slots = 2;
  while (slots * 2 * sizeof(JoinTable::Slot) <= settings.bytes * 4 / 5) slots *= 2;
  const JoinTable table(slots, settings.threads);
  const uint64_t count = settings.bytes / 5 / sizeof(uint64_t);
  const Words column(new uint64_t[count]);
#pragma omp parallel for schedule(static) num_threads(settings.threads)
  for (uint64_t i = 0; i < count; ++i) column[i] = random_at(2, i) % table.keys() + 1;
  return measure(settings, count, [&](int thread) {
    const Share share(count, thread, settings.threads);
    uint64_t sum = 0;
    for (uint64_t i = share.begin; i < share.end; ++i) sum += table.value_of(column[i]);
    return sum;
  });
}

inline Measured map_find(const Settings& settings) {
  constexpr uint64_t kBytesPerEntry = 40;  // a node of the heap and its place in the bucket array
  const uint64_t count = settings.bytes / kBytesPerEntry;
  std::unordered_map<uint64_t, uint64_t> map;
  map.reserve(count);
  for (uint64_t i = 0; i < count; ++i) map.emplace(random_at(1, i), i);
  return measure(settings, settings.ops, [&](int thread) {
    const Share share(settings.ops, thread, settings.threads);
    FastRandom random(static_cast<uint64_t>(thread));
    uint64_t sum = 0;
    for (uint64_t i = share.begin; i < share.end; ++i)
      sum += map.find(random_at(1, random.below(count)))->second;
    return sum;
  });
}

}  // namespace examples
