#include "process/extent_choice.h"

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "cache/extents/extent_cache.h"

namespace spw::process {

namespace {
constexpr const char* kExtentsVariable = "SPILLWAY_TEST_EXTENTS";
constexpr uint32_t kEagerShare = 2;
}  // namespace

Result<std::unique_ptr<cache::SharedCache>> add_extents(std::unique_ptr<cache::SharedCache> blocks,
                                                        cache::BlockSource& source,
                                                        access::MappedEngine& engine,
                                                        const cache::Options& options,
                                                        cache::IoErrorHandler on_error) {
  if (!cache::ExtentCache::is_possible(options.block_shift)) return blocks;
  const char* const set = ::secure_getenv(kExtentsVariable);
  cache::ExtentMover::Options for_extents;
  for_extents.block_shift = options.block_shift;
  for_extents.write_wait_ns = options.frame_wait_ns_max;
  for_extents.on_error = on_error;
  if (set != nullptr && std::string_view(set) == "eager") {
    for_extents.share = kEagerShare;
    for_extents.after_misses = true;
  }
  // Nobody is worse off where there can be none.
  auto memory = engine.make_extents(options.frame_count, for_extents.share);
  if (!memory && memory.status().error() == ENOTSUP) return blocks;
  if (!memory) return memory.status();
  return cache::ExtentCache::around(std::move(blocks), source, std::move(*memory), for_extents);
}

}  // namespace spw::process
