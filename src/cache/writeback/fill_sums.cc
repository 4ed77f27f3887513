#include "cache/writeback/fill_sums.h"

#include "base/units.h"
#include "platform/random.h"

namespace spw::cache {

FillSums::FillSums(uint32_t frame_count, uint64_t block_bytes)
    : block_bytes_(block_bytes), checksum_(store::checksum_function()) {
  platform::draw_random(secret_.bytes, sizeof secret_.bytes);
  if (auto memory = platform::map_anonymous(round_up(frame_count * sizeof(uint64_t), kMmuPageBytes)))
    sums_ = std::move(*memory);
}

// A step is a permutation of what was, for a given page, and of that, for what was given.
uint64_t FillSums::sum_of(const std::byte* contents) const {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15u;
  uint64_t sum = 0;
  for (uint64_t at = 0; at < block_bytes_; at += store::kSummedBytes)
    sum = (sum ^ checksum_(contents + at, secret_)) * kOdd;
  return sum;
}

}  // namespace spw::cache
