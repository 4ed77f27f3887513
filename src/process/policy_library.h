// An eviction policy from a shared library of the user's (include/spillway/policy.h).
//
// What is loaded is trusted: it runs in the program, with its rights. Files that are damaged or are no policies are
// found as far as that goes (library_file.h), and a library that crashes as it is loaded ends the program with a line.
// Afterwards each offer is checked; a function that crashes is a crash of the program.
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

// Errors: EINVAL, with a line for the user: the library cannot be loaded, or holds no policy of this version. Ends the
// process with one (exit code 2) if loading it crashes.
Result<PolicyFactory> load_policy(const std::string& file);

}  // namespace spw::process
