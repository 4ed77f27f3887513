#include "cache/page_sets/page_set_table.h"

#include <new>

#include "base/check.h"
#include "base/units.h"

namespace spw::cache {

namespace {

struct NamedRule {
  std::string_view name;
  SetRule rule;
};
constexpr NamedRule kRules[] = {
    {"sa-lru", SetRule::kLru}, {"sa-lfu", SetRule::kLfu}, {"sa-nrlfu", SetRule::kNrLfu}};

}  // namespace

std::optional<SetRule> set_rule_named(std::string_view policy) {
  for (const NamedRule& named : kRules)
    if (named.name == policy) return named.rule;
  return std::nullopt;
}

Result<platform::Mapping> PageSetTable::map_memory(uint32_t frame_count) {
  return platform::map_table(uint64_t{frame_count} / kBlocksASet * sizeof(PageSet));
}

PageSetTable::PageSetTable(SetRule rule, uint32_t frame_count, uint32_t partitions, platform::Mapping memory)
    : rule_(rule),
      map_(partitions),
      set_count_(frame_count / kBlocksASet),
      sets_per_partition_((set_count_ + partitions - 1) / partitions),
      memory_(std::move(memory)) {
  SPW_CHECK(uint64_t{sets_per_partition_} * (partitions - 1) < set_count_);
  auto* sets = reinterpret_cast<PageSet*>(memory_.data());
  // Counts of uses begin as zeros, an order of slots does not.
  if (rule == SetRule::kLru)
    for (uint32_t i = 0; i < set_count_; ++i) new (&sets[i].frequencies) SetFrequencies;
  for (uint32_t first = 0; first < set_count_; first += sets_per_partition_)
    partitions_.emplace_back(sets + first, std::min(sets_per_partition_, set_count_ - first),
                             first * kBlocksASet);
}

}  // namespace spw::cache
