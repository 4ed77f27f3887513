// One bit for each of very many blocks, with memory only where bits differ from zero.
//
//     bit i  =  word (i / 64 % 512) of leaf (i / 32768), or 0 where there is no leaf
//
// A root entry goes null -> own leaf, null <-> the shared leaf of ones -> own leaf; an own leaf stays for good.
// Threads: test, set and clear from any thread at any time; a range operation is not atomic as a whole.
// Ordering: set() releases and test() acquires, so what was written before a bit was set is seen by who sees it.
// Limits: out of native memory is a check failure: a bit that cannot be kept would be data lost.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/atomic.h"
#include "region/native_memory.h"

namespace spw::region {

class SparseBits {
 public:
  static constexpr uint64_t kLeafBits = 32768;

  Status allocate(NativeMemory& memory, uint64_t bit_count);

  bool test(uint64_t bit) const {
    const Leaf* leaf = root_[bit / kLeafBits].load_acquire();
    if (leaf == nullptr) return false;
    return (leaf->words[bit % kLeafBits / 64].load_acquire() >> (bit % 64)) & 1;
  }
  // Whether it was not.
  bool set(uint64_t bit) {
    return (own_leaf(bit / kLeafBits)->words[bit % kLeafBits / 64].fetch_or_acq_rel(mask(bit)) & mask(bit)) ==
           0;
  }
  void set_range(uint64_t first, uint64_t count);
  // How many were set.
  uint64_t clear_range(uint64_t first, uint64_t count);
  // Calls found(first, count) for each run of set bits in the range, in order; a run may come in several pieces.
  template <class Found>
  void for_each_run(uint64_t first, uint64_t count, Found found) const;
  uint64_t count_set(uint64_t first, uint64_t count) const;

 private:
  struct Leaf {
    Atomic<uint64_t> words[kLeafBits / 64];
  };
  static uint64_t mask(uint64_t bit) { return uint64_t{1} << (bit % 64); }
  // Bits [from, to) of a word, 0 <= from < to <= 64.
  static uint64_t mask(uint64_t from, uint64_t to) { return (~uint64_t{0} >> (64 - (to - from))) << from; }

  Leaf* own_leaf(uint64_t index);
  // Calls piece(leaf index, first bit in the leaf, bits) for the parts of a range.
  template <class Piece>
  static void for_each_leaf(uint64_t first, uint64_t count, Piece piece);

  NativeMemory* memory_ = nullptr;
  Leaf* ones_ = nullptr;
  SparseArray<Atomic<Leaf*>> root_;
};

template <class Piece>
void SparseBits::for_each_leaf(uint64_t first, uint64_t count, Piece piece) {
  while (count > 0) {
    uint64_t in_leaf = first % kLeafBits;
    uint64_t bits = std::min(count, kLeafBits - in_leaf);
    piece(first / kLeafBits, in_leaf, bits);
    first += bits;
    count -= bits;
  }
}

template <class Found>
void SparseBits::for_each_run(uint64_t first, uint64_t count, Found found) const {
  for_each_leaf(first, count, [&](uint64_t index, uint64_t at, uint64_t bits) {
    const Leaf* leaf = root_[index].load_acquire();
    if (leaf == nullptr) return;
    uint64_t end = at + bits;
    uint64_t run = 0;  // bits of the run that ends at `at`
    while (at < end) {
      uint64_t word_end = std::min(end, (at / 64 + 1) * 64);
      uint64_t word = leaf->words[at / 64].load_acquire() >> (at % 64);
      uint64_t valid = word_end - at;
      uint64_t step;
      if (word & 1) {
        step = ~word == 0 ? valid : std::min<uint64_t>(valid, static_cast<uint64_t>(__builtin_ctzll(~word)));
        run += step;
      } else {
        if (run > 0) found(index * kLeafBits + at - run, run);
        run = 0;
        step = word == 0 ? valid : std::min<uint64_t>(valid, static_cast<uint64_t>(__builtin_ctzll(word)));
      }
      at += step;
    }
    if (run > 0) found(index * kLeafBits + at - run, run);
  });
}

}  // namespace spw::region
