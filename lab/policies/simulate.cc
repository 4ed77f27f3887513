#include "lab/policies/simulate.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace spw::lab {

namespace {

std::unique_ptr<cache::Policy> policy_named(std::string_view name, uint32_t frames) {
  auto policy = cache::make_policy(name, frames);
  SPW_CHECK(policy.is_ok());
  return std::move(*policy);
}

}  // namespace

SimulatedCache::SimulatedCache(std::string_view policy, uint32_t frames)
    : policy_(policy_named(policy, frames)), blocks_(frames, kEmpty), referenced_(frames), on_offer_(frames) {
  frame_of_.reserve(frames);
}

cache::FrameProbe::Verdict SimulatedCache::probe(uint32_t frame) {
  if (blocks_[frame] == kEmpty || on_offer_[frame]) return Verdict::kBusy;
  if (!referenced_[frame]) return Verdict::kEvictable;
  referenced_[frame] = false;
  return Verdict::kReferenced;
}

uint32_t SimulatedCache::free_a_frame() {
  if (frame_of_.size() < blocks_.size()) return static_cast<uint32_t>(frame_of_.size());
  const uint32_t victim = policy_->next_candidate(*this);
  SPW_CHECK(victim != cache::kNoCandidate);
  on_offer_[victim] = true;
  policy_->on_remove(victim, BlockId(blocks_[victim]));
  on_offer_[victim] = false;
  frame_of_.erase(blocks_[victim]);
  return victim;
}

void SimulatedCache::access(uint64_t block) {
  ++accesses_;
  const auto found = frame_of_.find(block);
  uint32_t frame;
  if (found != frame_of_.end()) {
    frame = found->second;
  } else {
    ++misses_;
    frame = free_a_frame();
    blocks_[frame] = block;
    frame_of_[block] = frame;
    policy_->on_insert(frame, BlockId(block));
  }
  referenced_[frame] = true;
  if (policy_->wants_touches()) policy_->on_touch(frame);
}

void SimulatedSets::access(uint64_t block) {
  ++accesses_;
  const uint64_t hash = block * uint64_t{0x9E3779B97F4A7C15u};
  Set& set = sets_[static_cast<uint64_t>(static_cast<unsigned __int128>(hash) * sets_.size() >> 64)];
  uint64_t* const end = std::end(set.blocks);
  uint64_t* place = std::find(std::begin(set.blocks), end, block);
  const auto slot = [&] { return static_cast<unsigned>(place - set.blocks); };
  if (place != end) return set.frequencies.note_use(rule_, slot());
  ++misses_;
  place = std::find(std::begin(set.blocks), end, kEmpty);
  if (place == end) {
    place = set.blocks + set.frequencies.victim(rule_, UINT8_MAX);
    set.frequencies.remove(rule_, slot(), BlockId(*place));
  }
  *place = block;
  set.frequencies.insert(rule_, slot(), BlockId(block));
}

namespace {

struct NamedRule {
  std::string_view name;
  cache::SetRule rule;
};
constexpr NamedRule kRules[] = {
    {"sa-lru", cache::SetRule::kLru}, {"sa-lfu", cache::SetRule::kLfu}, {"sa-nrlfu", cache::SetRule::kNrLfu}};

template <class Cache>
double miss_ratio_of(Cache cache, std::span<const uint64_t> blocks) {
  for (const uint64_t block : blocks) cache.access(block);
  return cache.miss_ratio();
}

}  // namespace

std::span<const std::string_view> policy_names() {
  static constexpr std::string_view kNames[] = {"clock",  "lru",    "s3-fifo", "clock2q+",
                                                "sa-lru", "sa-lfu", "sa-nrlfu"};
  return kNames;
}

double miss_ratio(std::string_view policy, uint32_t frames, std::span<const uint64_t> blocks) {
  for (const NamedRule& named : kRules)
    if (named.name == policy) return miss_ratio_of(SimulatedSets(named.rule, frames), blocks);
  SimulatedCache cache(policy, frames);
  for (const uint64_t block : blocks) cache.access(block);
  return cache.miss_ratio();
}

}  // namespace spw::lab
