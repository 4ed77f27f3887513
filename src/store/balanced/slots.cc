#include "store/balanced/slots.h"

#include <bit>

#include "base/check.h"
#include "base/units.h"

namespace spw::store {

Status Slots::allocate(uint64_t slots) {
  slots_ = slots;
  auto memory = platform::map_anonymous(round_up(2 * words() * sizeof(uint64_t), kMmuPageBytes));
  if (!memory) return memory.status();
  memory_ = std::move(*memory);
  return {};
}

std::optional<Slots::Taken> Slots::take() {
  for (; first_word_ < words(); ++first_word_) {
    const uint64_t bits = taken_bits()[first_word_];
    if (bits == UINT64_MAX) continue;
    const auto bit = static_cast<unsigned>(std::countr_one(bits));
    const uint64_t slot = first_word_ * kBitsPerWord + bit;
    if (slot >= slots_) return std::nullopt;
    taken_bits()[first_word_] = bits | uint64_t{1} << bit;
    taken_.fetch_add_relaxed(1);
    const bool is_unclean = all_unclean_ || (unclean_bits()[first_word_] >> bit & 1) != 0;
    unclean_bits()[first_word_] &= ~(uint64_t{1} << bit);
    return Taken{slot, is_unclean};
  }
  return std::nullopt;
}

void Slots::give_back(uint64_t slot, bool is_unclean) {
  const uint64_t word = slot / kBitsPerWord, bit = uint64_t{1} << slot % kBitsPerWord;
  SPW_DCHECK((taken_bits()[word] & bit) != 0);
  if (is_unclean) unclean_bits()[word] |= bit;
  taken_bits()[word] &= ~bit;
  if (word < first_word_) first_word_ = word;
  taken_.fetch_sub_relaxed(1);
}

}  // namespace spw::store
