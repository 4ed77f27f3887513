// Whether a file can be a shared library of this machine, before the loader maps it: of a file that was cut off it
// would map what is not there, and of a damaged one it believes each address.
//
// Code that is loaded is trusted: this finds files that are broken, not those that mean harm.
// Threads: any.
#pragma once

#include <string>

namespace spw::process {

// One clause that says what is wrong with it: "it is no ELF file". "": nothing is, as far as headers and the table of
// what the loader needs say.
std::string fault_of_library(const std::string& file);

}  // namespace spw::process
