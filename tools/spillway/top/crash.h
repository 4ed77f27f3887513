// The terminal is put right and something is said, however the tool goes down.
//
// What it watches is another process's memory, which that process may cut off at any moment: a look ends with SIGBUS
// then.
// Threads: one. Lifetime: handlers stay to the end of the process.
#pragma once

#include <string>

namespace spw::tool::top {

inline constexpr int kExitCutOff = 1;

// From now on SIGBUS ends the tool with a line and kExitCutOff.
void expect_cut_off_pages();
// From now on whatever ends the tool by a bug's signal gives the terminal the settings that it has now.
void remember_terminal();
// And writes this to it before: at most 255 bytes. "": the terminal is in order, and nothing is done to it any more.
void restore_terminal_by(const std::string& words);

}  // namespace spw::tool::top
