// Makes a cache from options: checks them, chooses what they leave open. Whether a policy ranks its frames or they are
// page sets is decided here, by rule_for(), and nowhere else.
#include <algorithm>
#include <bit>
#include <string>

#include "base/units.h"
#include "cache/frame_pool/pool_frames.h"
#include "cache/page_sets/set_frames.h"
#include "cache/partition/ranked_frames.h"
#include "cache/shared_cache.h"
#include "platform/machine.h"

namespace spw::cache {

namespace {

constexpr uint32_t kCacheFramesMin = 16;
constexpr uint32_t kPartitionFramesMin = 64;
constexpr unsigned kPartitionsPerCpu = 4;  // so that clients rarely meet at a combiner lock
constexpr unsigned kPartitionsMax = 1024;
constexpr size_t kQueueDepthMax = 4096;

Status bad(const std::string& what) { return Status::sentence(EINVAL, "cannot make a cache: " + what); }

// The rule of the page sets; nullopt: a policy ranks.
std::optional<SetRule> rule_for(const Options& options) {
  return options.make_policy ? std::nullopt : set_rule_named(options.policy);
}

Status check(const Options& options) {
  if (options.block_shift < kMinBlockShift || options.block_shift > kMaxBlockShift)
    return bad("a block is 4 KiB to 2 MiB, not 2^" + std::to_string(options.block_shift) + " bytes");
  if (options.frame_count < kCacheFramesMin)
    return bad(std::to_string(options.frame_count) + " frames of " +
               format_size(uint64_t{1} << options.block_shift) + " are too few, at least " +
               std::to_string(kCacheFramesMin) + " are needed: give it more memory or smaller blocks");
  if (options.partitions != 0 && !std::has_single_bit(options.partitions))
    return bad(std::to_string(options.partitions) + " partitions are not a power of two");
  if (options.partitions > kPartitionsMax)
    return bad("more than " + std::to_string(kPartitionsMax) + " partitions");
  if (options.partitions > 1 && options.frame_count / options.partitions < kPartitionFramesMin)
    return bad(std::to_string(options.partitions) + " partitions need at least " +
               std::to_string(kPartitionFramesMin) + " frames each, there are " +
               std::to_string(options.frame_count));
  if (options.queue_depth == 0 || options.queue_depth > kQueueDepthMax)
    return bad("a queue depth of " + std::to_string(options.queue_depth) + ", 1 to " +
               std::to_string(kQueueDepthMax) + " are possible");
  if (options.delegation == Delegation::kDedicated && options.servers == 0)
    return bad("dedicated delegation without servers");
  if (options.delegation == Delegation::kDedicated && rule_for(options))
    return bad("page sets (" + options.policy + ") have no servers: misses take frames by themselves");
  if (options.reserve_blocks_max == 0) return bad("a reserve of no blocks");
  return Status::ok();
}

// `unit`: so many frames stay together.
FrameShares choose_shares(const Options& options, uint32_t unit) {
  uint32_t wanted = options.partitions;
  if (wanted == 0) {
    // A server sleeps in one queue, so one partition each is best.
    wanted = options.delegation == Delegation::kDedicated ? options.servers
                                                          : kPartitionsPerCpu * platform::cpu_count();
    wanted = std::min(std::bit_ceil(wanted), kPartitionsMax);
    while (wanted > 1 && options.frame_count / wanted < kPartitionFramesMin) wanted /= 2;
  }
  while (wanted > 1 && !FrameShares(options.frame_count, wanted, unit).is_even()) wanted /= 2;
  return FrameShares(options.frame_count, wanted, unit);
}

Directory make_directory(std::optional<SetRule> rule, const FrameShares& shares, bool counts_pins,
                         platform::Mapping memory) {
  if (rule) return Directory(PageSetTable(*rule, counts_pins, shares, std::move(memory)));
  return Directory(BlockTable(shares, std::move(memory)));
}

Result<std::unique_ptr<Policy>> policy_for(const Options& options, uint32_t frames) {
  if (!options.make_policy) return make_policy(options.policy, frames);
  auto policy = options.make_policy(frames);
  if (!policy) return Status(ENOMEM, "making the eviction policy " + options.policy);
  return policy;
}

}  // namespace

std::unique_ptr<Organisation> make_organisation(PartitionContext& context, PartitionId id,
                                                Writeback& writeback, std::unique_ptr<Policy> policy) {
  if (!policy) return std::make_unique<SetFrames>(context, id, writeback);
  return std::make_unique<RankedFrames>(context, id, writeback, std::move(policy));
}

Result<std::unique_ptr<SharedCache>> SharedCache::create(const Options& options, BlockSource& source,
                                                         IoErrorHandler on_error, void* error_context,
                                                         std::unique_ptr<FrameSource> frames) {
  if (Status status = check(options); !status) return status;
  if (!frames) {
    auto pool = PoolFrames::create(options.frame_count, options.block_shift, options.huge_frames,
                                   options.staging_runs);
    if (!pool) return pool.status();
    frames = std::move(*pool);
  }
  const std::optional<SetRule> rule = rule_for(options);
  const FrameShares shares = choose_shares(options, rule ? kBlocksASet : 1);
  auto memory = rule ? PageSetTable::map_memory(shares) : BlockTable::map_memory(shares);
  if (!memory) return memory.status();
  std::vector<std::unique_ptr<Policy>> policies(shares.partitions());
  for (uint32_t p = 0; p < policies.size() && !rule; ++p) {
    auto policy = policy_for(options, shares.of(PartitionId(p)));
    if (!policy) return policy.status();
    policies[p] = std::move(*policy);
  }
  auto cache = std::make_unique<SharedCacheParts>(
      options, make_directory(rule, shares, !frames->notes_uses(), std::move(*memory)), std::move(frames),
      source, on_error, error_context);
  if (Status status = cache->open_partitions(std::move(policies)); !status) return status;
  return std::unique_ptr<SharedCache>(std::move(cache));
}

}  // namespace spw::cache
