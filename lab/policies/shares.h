// What fixed shares of memory for parts of the data could gain over one cache that all of it competes for.
//
// Threads: none.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace spw::lab {

inline constexpr uint32_t kShareParts = 8;   // of the data, equal and contiguous
inline constexpr uint32_t kShareUnits = 16;  // that the memory is dealt out in

// The least misses that any division of `frames` among the parts has, in units of a kShareUnits-th; each part has a
// cache of its own with this policy. By dynamic programming over the parts' own miss counts.
uint64_t misses_with_best_shares(std::string_view policy, uint32_t frames, std::span<const uint64_t> blocks);

// The least sum of costs[part][units of that part], where units are at most as many as the rows have, less one, in all.
uint64_t least_cost(std::span<const std::vector<uint64_t>> costs);

}  // namespace spw::lab
