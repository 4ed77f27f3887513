// A cache without contents: which accesses of a trace miss under an eviction policy, as a partition would use it. A
// miss waits for nothing, so candidates are asked for when they are needed; a use ends at once.
//
// Threads: none. Lifetime: the policy's frames are the cache's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cache/eviction/policy.h"
#include "cache/page_sets/set_frequencies.h"

namespace spw::lab {

class SimulatedCache final : private cache::FrameProbe {
 public:
  // There has to be such a policy.
  SimulatedCache(std::string_view policy, uint32_t frames);

  void access(uint64_t block);
  uint64_t accesses() const { return accesses_; }
  uint64_t misses() const { return misses_; }
  double miss_ratio() const { return static_cast<double>(misses_) / static_cast<double>(accesses_); }

 private:
  static constexpr uint64_t kEmpty = UINT64_MAX;

  Verdict probe(uint32_t frame) override;
  uint32_t free_a_frame();

  std::unique_ptr<cache::Policy> policy_;
  std::vector<uint64_t> blocks_;  // of the frames
  std::vector<bool> referenced_;
  std::vector<bool> on_offer_;
  std::unordered_map<uint64_t, uint32_t> frame_of_;
  uint64_t accesses_ = 0;
  uint64_t misses_ = 0;
};

// The same with page sets: a block can be in eight frames only, those of the set it hashes to.
class SimulatedSets {
 public:
  SimulatedSets(cache::SetRule rule, uint32_t frames)
      : rule_(rule), sets_(std::max(frames / cache::kBlocksASet, 1u)) {}

  void access(uint64_t block);
  double miss_ratio() const { return static_cast<double>(misses_) / static_cast<double>(accesses_); }

 private:
  static constexpr uint64_t kEmpty = UINT64_MAX;
  struct Set {
    Set() { std::fill(std::begin(blocks), std::end(blocks), kEmpty); }
    uint64_t blocks[cache::kBlocksASet];
    cache::SetFrequencies frequencies;
  };

  const cache::SetRule rule_;
  std::vector<Set> sets_;
  uint64_t accesses_ = 0;
  uint64_t misses_ = 0;
};

// What miss_ratio() knows by name: the policies of partitions, and "sa-lru", "sa-lfu" and "sa-nrlfu".
std::span<const std::string_view> policy_names();

double miss_ratio(std::string_view policy, uint32_t frames, std::span<const uint64_t> blocks);

}  // namespace spw::lab
