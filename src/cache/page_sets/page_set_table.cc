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

Result<platform::Mapping> PageSetTable::map_memory(const FrameShares& shares) {
  return platform::map_table(shares.frame_count() / kBlocksASet * sizeof(PageSet));
}

PageSetTable::PageSetTable(SetRule rule, bool counts_pins, const FrameShares& shares,
                           platform::Mapping memory)
    : rule_(rule),
      counts_pins_(counts_pins),
      shares_(shares),
      map_(shares.partitions()),
      memory_(std::move(memory)) {
  SPW_CHECK(shares.is_for_all());
  auto* sets = reinterpret_cast<PageSet*>(memory_.data());
  // Counts of uses begin as zeros, an order of slots does not.
  if (rule == SetRule::kLru)
    for (uint32_t i = 0; i < shares.frame_count() / kBlocksASet; ++i)
      new (&sets[i].frequencies) SetFrequencies;
  for (uint32_t p = 0; p < shares.partitions(); ++p) {
    const uint32_t first = shares.first(PartitionId(p)).value;
    partitions_.emplace_back(sets + first / kBlocksASet, shares.of(PartitionId(p)) / kBlocksASet, first);
  }
}

}  // namespace spw::cache
