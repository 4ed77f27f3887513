// How the cap is divided: frames, and what comes with each of them.
//
//   cap >= kFixedBytes + frames * (block_bytes + kTablesPerFrameBytes)
//
// kTablesPerFrameBytes covers the cache's words and tables and the SATC entries of as many threads as there are
// processors; runtime_test checks it against what these parts say they use. Pure.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "runtime/options.h"

namespace spw::runtime {

inline constexpr uint64_t kFixedBytes = uint64_t{4} << 20;
inline constexpr uint64_t kTablesPerFrameBytes = 96;

// EINVAL, with one line for the user, when the cap does not hold kFramesMin frames.
Result<uint32_t> plan_frames(const Options& options);

}  // namespace spw::runtime
