// `spillway top` on a terminal: looks at programs and reads keys until the user or the program ends it.
#pragma once

#include <cstdint>

#include "commands.h"
#include "top/terminal.h"

namespace spw::tool::top {

// Exit code. `process`: 0 for the list of runs. The terminal is closed before anything is said, and before the process
// goes down by a signal that it was sent.
int watch_on_screen(std::unique_ptr<Terminal> terminal, uint64_t process, const TopArguments& arguments);

}  // namespace spw::tool::top
