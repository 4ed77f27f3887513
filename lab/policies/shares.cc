#include "lab/policies/shares.h"

#include <algorithm>

#include "lab/policies/simulate.h"

namespace spw::lab {

namespace {

constexpr uint32_t kPartFramesMin = 16;  // with fewer a part counts as not cached

// The accesses to each part.
std::vector<std::vector<uint64_t>> parts_of(std::span<const uint64_t> blocks) {
  std::vector<uint64_t> data(blocks.begin(), blocks.end());
  std::sort(data.begin(), data.end());
  data.erase(std::unique(data.begin(), data.end()), data.end());
  std::vector<uint64_t> first_of_part;
  for (uint32_t part = 0; part < kShareParts; ++part)
    first_of_part.push_back(data[data.size() * part / kShareParts]);
  std::vector<std::vector<uint64_t>> parts(kShareParts);
  for (const uint64_t block : blocks) {
    const auto behind = std::upper_bound(first_of_part.begin(), first_of_part.end(), block);
    parts[static_cast<size_t>(behind - first_of_part.begin()) - 1].push_back(block);
  }
  return parts;
}

uint64_t misses(std::string_view policy, uint32_t frames, const std::vector<uint64_t>& blocks) {
  if (frames < kPartFramesMin) return blocks.size();
  SimulatedCache cache(policy, frames);
  for (const uint64_t block : blocks) cache.access(block);
  return cache.misses();
}

}  // namespace

uint64_t least_cost(std::span<const std::vector<uint64_t>> costs) {
  const size_t units = costs.front().size();
  std::vector<uint64_t> least(units, 0);  // of the parts so far, by units used at most
  for (const std::vector<uint64_t>& part : costs) {
    std::vector<uint64_t> with_part(units, UINT64_MAX);
    for (size_t used = 0; used < units; ++used)
      for (size_t own = 0; own <= used; ++own)
        with_part[used] = std::min(with_part[used], least[used - own] + part[own]);
    least = std::move(with_part);
  }
  return least.back();
}

uint64_t misses_with_best_shares(std::string_view policy, uint32_t frames, std::span<const uint64_t> blocks) {
  std::vector<std::vector<uint64_t>> costs;
  for (const std::vector<uint64_t>& part : parts_of(blocks)) {
    std::vector<uint64_t>& cost = costs.emplace_back();
    for (uint32_t units = 0; units <= kShareUnits; ++units)
      cost.push_back(misses(policy, frames * units / kShareUnits, part));
  }
  return least_cost(costs);
}

}  // namespace spw::lab
