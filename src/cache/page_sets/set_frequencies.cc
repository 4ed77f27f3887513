#include "cache/page_sets/set_frequencies.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace spw::cache {

SetFrequencies::SetFrequencies() {
  for (unsigned slot = 0; slot < kBlocksASet; ++slot)
    frequencies_[slot].store_relaxed(static_cast<uint8_t>(slot));
}

void SetFrequencies::note_use(SetRule rule, unsigned slot) {
  const uint8_t before = frequencies_[slot].load_relaxed();
  if (rule != SetRule::kLru) {
    // Without the lock nothing is halved: insert() does that to what has come up to the limit.
    if (before < kMax) frequencies_[slot].store_relaxed(before + 1);
    return;
  }
  for (Atomic<uint8_t>& other : frequencies_) {
    const uint8_t place = other.load_relaxed();
    if (place > before) other.store_relaxed(place - 1);
  }
  frequencies_[slot].store_relaxed(kBlocksASet - 1);
}

void SetFrequencies::insert(SetRule rule, unsigned slot, BlockId block) {
  if (rule == SetRule::kLru) return note_use(rule, slot);
  const bool is_full = std::any_of(frequencies_.begin(), frequencies_.end(),
                                   [](const Atomic<uint8_t>& count) { return count.load_relaxed() == kMax; });
  if (is_full) halve();
  const uint8_t before = rule == SetRule::kNrLfu ? take_from_history(fingerprint(block)) : 0;
  frequencies_[slot].store_relaxed(std::min<uint8_t>(before, kMax - 1) + 1);
}

void SetFrequencies::remove(SetRule rule, unsigned slot, BlockId block) {
  next_victim_ = (slot + 1) % kBlocksASet;
  if (rule != SetRule::kNrLfu) return;
  (void)take_from_history(fingerprint(block));  // of another block with the same fingerprint
  history_[next_] = fingerprint(block);
  history_counts_[next_] = frequencies_[slot].load_relaxed();
  next_ = (next_ + 1) % kHistory;
}

unsigned SetFrequencies::victim(SetRule, uint8_t eligible) const {
  SPW_CHECK(eligible != 0);
  unsigned least = kBlocksASet;
  for (unsigned i = 0; i < kBlocksASet; ++i) {
    const unsigned slot = (next_victim_ + i) % kBlocksASet;
    if ((eligible >> slot & 1) == 0) continue;
    if (least == kBlocksASet || frequency(slot) < frequency(least)) least = slot;
  }
  return least;
}

void SetFrequencies::halve() {
  for (Atomic<uint8_t>& count : frequencies_) count.store_relaxed(count.load_relaxed() / 2);
  for (uint8_t& count : history_counts_) count /= 2;
}

uint8_t SetFrequencies::take_from_history(uint32_t block) {
  for (unsigned i = 0; i < kHistory; ++i) {
    if (history_[i] != block) continue;
    history_[i] = 0;
    return history_counts_[i];
  }
  return 0;
}

void SetFrequencies::check_invariants(SetRule rule) const {
  for (unsigned i = 0; i < kHistory; ++i)
    for (unsigned j = i + 1; j < kHistory; ++j) SPW_CHECK(history_[i] == 0 || history_[i] != history_[j]);
  if (rule != SetRule::kLru) return;
  unsigned places = 0;
  for (unsigned slot = 0; slot < kBlocksASet; ++slot) places |= 1u << frequency(slot);
  SPW_CHECK(places == (1u << kBlocksASet) - 1);
}

}  // namespace spw::cache
