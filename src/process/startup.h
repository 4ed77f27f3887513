// The one Runtime of the process: when it is made, and by whom it is found.
//
// Options are read and checked when the library is loaded: a bad one ends the program at once with exit code 2. The
// runtime itself is made at the first allocation that belongs to managed space, so that a program which never needs it
// (a compiler's test program, a shell's child) costs nothing.
// Threads: any.
#pragma once

#include <string_view>

#include "process/runtime.h"

namespace spw::process {

// The runtime, made now if need be; nullptr while it is being made by this very thread.
Runtime* ensure_runtime();
// An option as if its variable had been set, over what the environment says. EBUSY once there is a runtime; EINVAL when
// there is no such option or it does not take the value, or the options together cannot be.
Status override_option(std::string_view name, std::string_view value);
// As they are: what the environment says, and what was set over it.
const Options& process_options();
// From now on what is mapped and cannot be read ends the process with a line that names the file, also in one that has
// no runtime.
Status expect_bus_errors();
// The runtime if there is one.
Runtime* current_runtime();

}  // namespace spw::process
