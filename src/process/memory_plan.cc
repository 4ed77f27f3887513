#include "process/memory_plan.h"

#include <algorithm>
#include <bit>
#include <string>

#include "base/units.h"
#include "cache/frame_pool/pool_frames.h"
#include "cache/partition_map.h"

namespace spw::process {

uint64_t encrypted_copies_bytes(const Options& options) {
  if (options.encrypt == Switch::kOff) return 0;
  return std::clamp(options.memory_bytes / kCopiesShare, kCopiesBytesMin, kCopiesBytesMax);
}

bool compressed_share_changes(const Options& options, EngineKind engine) {
  return options.compress != Compress::kOff && engine == EngineKind::kMapped && !options.memory_is_auto;
}

uint64_t compressed_bytes(const Options& options, EngineKind engine) {
  const bool has_some = options.compress == Compress::kLz4 || options.compress == Compress::kZstd;
  return has_some && !compressed_share_changes(options, engine) ? options.memory_bytes / kCompressedShare : 0;
}

namespace {
// Whole huge pages of them, where there are any: a device takes memory that lies together in fewer pieces.
uint64_t translated_runs(const Options& options, uint64_t run_bytes) {
  if (!options.block_is_auto && options.buffer.empty()) return 0;
  const uint64_t share = options.block_is_auto ? kRunStagingShare : kFileStagingShare;
  const uint64_t runs = options.memory_bytes / share / run_bytes, together = kHugePageBytes / run_bytes;
  return std::min(runs < together ? runs : round_down(runs, together), kStagingRunsMax);
}
}  // namespace

Result<MemoryPlan> plan_memory(const Options& options, EngineKind engine) {
  MemoryPlan plan;
  uint64_t fixed_bytes = kFixedBytes;
  const uint64_t per_frame = options.block_bytes + kTablesPerFrameBytes;
  const auto shift = static_cast<unsigned>(std::countr_zero(options.block_bytes));
  const uint64_t run_bytes = uint64_t{cache::run_blocks_max(shift)} << shift;
  if (engine == EngineKind::kTranslated && shift < cache::kStagedShiftEnd) {
    plan.staging_runs = static_cast<uint32_t>(translated_runs(options, run_bytes));
    fixed_bytes += plan.staging_runs * run_bytes;
  }
  if (engine == EngineKind::kMapped) {
    // What read-ahead gets must not make a cap too small.
    const uint64_t least_bytes = kFixedBytes + kCapFramesMin * per_frame;
    const uint64_t spare_bytes = options.memory_bytes > least_bytes ? options.memory_bytes - least_bytes : 0;
    const uint64_t share =
        compressed_share_changes(options, engine) ? kCompressedStagingShare : kStagingShare;
    plan.staging_runs = static_cast<uint32_t>(
        std::min({options.memory_bytes / share / run_bytes, spare_bytes / 2 / run_bytes, kStagingRunsMax}));
    fixed_bytes += plan.staging_runs * run_bytes;
    if (options.block_bytes <= cache::kParkedBytesMax) fixed_bytes += options.memory_bytes / kParkedPlanShare;
    if (options.block_bytes == kMmuPageBytes)
      fixed_bytes += std::min(options.memory_bytes / kLiftedPlanShare, kLiftedPlanBytesMax);
  }
  if (!options.buffer.empty()) {
    plan.index_bytes = std::max(kIndexFixedBytes, options.memory_bytes / kIndexPlanShare);
    fixed_bytes += plan.index_bytes - kIndexFixedBytes;
  }
  fixed_bytes += encrypted_copies_bytes(options) + compressed_bytes(options, engine);
  uint64_t for_frames = options.memory_bytes > fixed_bytes ? options.memory_bytes - fixed_bytes : 0;
  uint64_t frames = std::min<uint64_t>(for_frames / per_frame, UINT32_MAX / 4);
  if (frames < kCapFramesMin) {
    return Status::sentence(EINVAL, "a cap of " + format_size(options.memory_bytes) +
                                        " is too small for blocks of " + format_size(options.block_bytes) +
                                        ": raise --memory to at least " +
                                        format_size(round_up(fixed_bytes + kCapFramesMin * per_frame, kMiB)) +
                                        " or lower --block");
  }
  plan.frames = static_cast<uint32_t>(frames);
  return plan;
}

}  // namespace spw::process
