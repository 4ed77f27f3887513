// An eviction policy from a shared library of the user's (include/spillway/policy.h).
//
// Threads: load() once, at the start. Lifetime: the library is never unloaded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "cache/eviction/policy.h"

namespace spw::process {

using PolicyFactory = std::function<std::unique_ptr<cache::Policy>(uint32_t frame_count)>;

// Errors: EINVAL, with a line for the user: the library cannot be loaded, or holds no policy of this version.
Result<PolicyFactory> load_policy(const std::string& file);

}  // namespace spw::process
