// Where an installation, or a build, has what the wrappers need.
#pragma once

#include <string>

#include "driver/command.h"

namespace spw::driver {

// From where this program lies: the folder that installations of this build have libraries in, else ../lib. The pass is
// in `spillway` below that, or, in a build, beside the runtime. Where it is nowhere, `plugin` is where it should be.
// `error`: why the program does not know where it lies, or "".
Places find_places(const char* called_as, std::string* error);

// Whether the dynamic linker looks there by itself, so that programs need not say it.
bool is_system_directory(const std::string& library_directory);

}  // namespace spw::driver
