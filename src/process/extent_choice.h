// Whether a process has extents (cache/extents/), and with how much of the memory.
//
// For streams, unless the kernel or the memory has no room for them. SPILLWAY_TEST_EXTENTS=eager: for all that can, in
// half of the frames.
// Threads: at the start.
#pragma once

#include <memory>

#include "access/mapped/engine.h"
#include "cache/cache.h"

namespace spw::process {

// The cache, behind one with extents if there are to be any and can be.
Result<std::unique_ptr<cache::SharedCache>> add_extents(std::unique_ptr<cache::SharedCache> blocks,
                                                        cache::BlockSource& source,
                                                        access::MappedEngine& engine,
                                                        const cache::Options& options,
                                                        cache::IoErrorHandler on_error);

}  // namespace spw::process
