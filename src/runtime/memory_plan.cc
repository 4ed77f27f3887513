#include "runtime/memory_plan.h"

#include <algorithm>
#include <string>

#include "base/units.h"

namespace spw::runtime {

Result<uint32_t> plan_frames(const Options& options) {
  uint64_t per_frame = options.block_bytes + kTablesPerFrameBytes;
  uint64_t for_frames = options.memory_bytes > kFixedBytes ? options.memory_bytes - kFixedBytes : 0;
  uint64_t frames = std::min<uint64_t>(for_frames / per_frame, UINT32_MAX / 4);
  if (frames < kFramesMin) {
    return Status::sentence(
        EINVAL, "a cap of " + format_size(options.memory_bytes) + " is too small for blocks of " +
                    format_size(options.block_bytes) + ": raise --memory to at least " +
                    format_size(round_up(kFixedBytes + kFramesMin * per_frame, kMiB)) + " or lower --block");
  }
  return static_cast<uint32_t>(frames);
}

}  // namespace spw::runtime
