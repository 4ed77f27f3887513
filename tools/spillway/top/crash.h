// The terminal is put right, however the tool goes down.
//
// Threads: one. Lifetime: handlers stay to the end of the process.
#pragma once

#include <string>

namespace spw::tool::top {

// From now on whatever ends the tool by a bug's signal gives the terminal the settings that it has now.
void remember_terminal();
// And writes this to it before: at most 255 bytes. "": the terminal is in order, and nothing is done to it any more.
void restore_terminal_by(const std::string& words);

}  // namespace spw::tool::top
