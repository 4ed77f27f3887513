// How the cap is divided: frames, what comes with each of them, and staging buffers.
//
//   cap >= kFixedBytes + frames * (block_bytes + kTablesPerFrameBytes) + staging_runs * bytes of a run
//          + copies (--encrypt) + compressed pages (--compress)
//
// kTablesPerFrameBytes covers the cache's words and tables and the SATC entries of as many threads as there are
// processors. Pure.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "process/options.h"

namespace spw::process {

inline constexpr uint64_t kFixedBytes = uint64_t{4} << 20;
inline constexpr uint64_t kTablesPerFrameBytes = 96;
// Staging takes this share of the cap, within bounds; none of a very
// small one, and the mapped engine reads nothing ahead then.
inline constexpr uint64_t kStagingShare = 16;
// Beside compressed pages, to which memory is worth more than to what is read ahead of the device.
inline constexpr uint64_t kCompressedStagingShare = 64;
inline constexpr uint64_t kStagingRunsMax = 64;
// Staging of the translated engine: where blocks come in units, by --block auto, and else where the options name files
// to buffer.
inline constexpr uint64_t kRunStagingShare = 32;
inline constexpr uint64_t kFileStagingShare = 64;
// The contents of parked blocks (cache/partition/parking.cc):
// kParkedBytesMax for each partition of 4096 frames or more.
inline constexpr uint64_t kParkedPlanShare = 256;
// What lifted blocks leave behind (BlockPool::kLiftsShare, kLiftsMax), with the pipes that they go through.
inline constexpr uint64_t kLiftedPlanShare = 64;
inline constexpr uint64_t kLiftedPlanBytesMax = uint64_t{5} << 18;

// The indexes of dirty blocks of buffered files, where the options name any; else what kFixedBytes has room for.
inline constexpr uint64_t kIndexPlanShare = 64;
inline constexpr uint64_t kIndexFixedBytes = uint64_t{1} << 20;

// Encrypted copies of what is being written.
inline constexpr uint64_t kCopiesShare = 16;
inline constexpr uint64_t kCopiesBytesMin = uint64_t{1} << 20, kCopiesBytesMax = uint64_t{4} << 20;
uint64_t encrypted_copies_bytes(const Options& options);

// Pages that are compressed: of the cap, or of what frames have when their share changes (compressed_share.h).
inline constexpr uint64_t kCompressedShare = 2;
bool compressed_share_changes(const Options& options, EngineKind engine);
uint64_t compressed_bytes(const Options& options, EngineKind engine);

struct MemoryPlan {
  uint32_t frames = 0;
  uint64_t index_bytes = kIndexFixedBytes;
  uint32_t staging_runs = 0;
};

// EINVAL, with one line for the user, when the cap does not hold kCapFramesMin frames.
Result<MemoryPlan> plan_memory(const Options& options, EngineKind engine);

}  // namespace spw::process
