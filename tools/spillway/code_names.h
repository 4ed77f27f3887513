// Names of places in another process's code: which function of which file.
#pragma once

#include <cstdint>
#include <string>

namespace spw::tool {

// "build_graph(int) (graph+0x1f3c)" of an address in a process whose /proc/PID/maps is this text; "graph+0x1f3c" where
// the file has no symbols (or cannot be read), and the plain number where no file is mapped there. The number after the
// file's name is what addr2line -e takes.
std::string name_of_code(uint64_t address, const std::string& maps);

// The same of a place that is known by its file, and counted from
// where that is loaded; `function`: as function_at() has it.
std::string name_of_place(const std::string& file, uint64_t offset, const std::string& function);

// The function that a file's symbols say is at this address, counted
// from where the file is loaded; "" where they do not say.
std::string function_at(const std::string& file, uint64_t address);

}  // namespace spw::tool
