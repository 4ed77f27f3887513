// What tests of the policies share: frames as a policy sees them, to be set by hand, and names.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "cache/eviction/policy.h"

namespace spw::cache {

class Frames final : public FrameProbe {
 public:
  explicit Frames(size_t count) : referenced(count), busy(count) {}
  Verdict probe(uint32_t frame) override {
    ++looks;
    if (busy[frame]) return Verdict::kBusy;
    if (!referenced[frame]) return Verdict::kEvictable;
    referenced[frame] = false;
    return Verdict::kReferenced;
  }
  std::vector<bool> referenced;
  std::vector<bool> busy;
  uint64_t looks = 0;
};

// A policy's name, as a test may be called.
inline std::string policy_case_name(std::string policy) {
  if (policy.ends_with('+')) policy.replace(policy.size() - 1, 1, "_plus");
  std::replace(policy.begin(), policy.end(), '-', '_');
  return policy;
}

}  // namespace spw::cache
