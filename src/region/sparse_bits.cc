#include "region/sparse_bits.h"

#include <bit>

#include "base/need.h"

namespace spw::region {

Status SparseBits::allocate(NativeMemory& memory, uint64_t bit_count) {
  memory_ = &memory;
  if (Status s = root_.allocate((bit_count + kLeafBits - 1) / kLeafBits); !s) return s;
  ones_ = static_cast<Leaf*>(memory.take(sizeof(Leaf)));
  if (ones_ == nullptr) return Status(ENOMEM, "cannot allocate a leaf of a block bitmap");
  for (auto& word : ones_->words) word.store_relaxed(~uint64_t{0});
  return Status::ok();
}

SparseBits::Leaf* SparseBits::own_leaf(uint64_t index) {
  Leaf* leaf = root_[index].load_acquire();
  while (leaf == nullptr || leaf == ones_) {
    auto* fresh = static_cast<Leaf*>(memory_->take(sizeof(Leaf)));
    need_memory(fresh, "get memory for the state of blocks");
    if (leaf == ones_)
      for (auto& word : fresh->words) word.store_relaxed(~uint64_t{0});
    // Releases the leaf's words to whoever loads the root entry. A lost race leaks one page; races are rare.
    if (root_[index].cas_strong_acq_rel(leaf, fresh)) return fresh;
  }
  return leaf;
}

void SparseBits::set_range(uint64_t first, uint64_t count) {
  for_each_leaf(first, count, [&](uint64_t index, uint64_t at, uint64_t bits) {
    Leaf* expected = nullptr;
    if (bits == kLeafBits && root_[index].cas_strong_acq_rel(expected, ones_)) return;
    if (root_[index].load_acquire() == ones_) return;
    Leaf* leaf = own_leaf(index);
    for (uint64_t end = at + bits; at < end; at = (at / 64 + 1) * 64)
      leaf->words[at / 64].fetch_or_acq_rel(mask(at % 64, std::min<uint64_t>(64, end - at / 64 * 64)));
  });
}

uint64_t SparseBits::clear_range(uint64_t first, uint64_t count) {
  uint64_t cleared = 0;
  for_each_leaf(first, count, [&](uint64_t index, uint64_t at, uint64_t bits) {
    Leaf* expected = ones_;
    if (bits == kLeafBits && root_[index].cas_strong_acq_rel(expected, nullptr)) {
      cleared += kLeafBits;
      return;
    }
    if (root_[index].load_acquire() == nullptr) return;
    Leaf* leaf = own_leaf(index);
    for (uint64_t end = at + bits; at < end; at = (at / 64 + 1) * 64) {
      const uint64_t taken = mask(at % 64, std::min<uint64_t>(64, end - at / 64 * 64));
      cleared += static_cast<uint64_t>(std::popcount(leaf->words[at / 64].fetch_and_acq_rel(~taken) & taken));
    }
  });
  return cleared;
}

uint64_t SparseBits::count_set(uint64_t first, uint64_t count) const {
  uint64_t total = 0;
  for_each_run(first, count, [&](uint64_t, uint64_t bits) { total += bits; });
  return total;
}

}  // namespace spw::region
