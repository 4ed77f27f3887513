// What a program is, before it is started: found where, and recompiled for Spillway or not.
#pragma once

#include <string>

namespace spw::tool {

enum class ProgramKind { kRecompiled, kUnmodified, kScript, kForeign };

// `detail`: the "#!" line of a script, the ABI symbol of a recompiled program if it has one, why a file is foreign.
struct ProgramFacts {
  ProgramKind kind = ProgramKind::kForeign;
  std::string detail;
};

// Where execvp would find `name`: itself when it has a slash, else the first executable of that name in PATH; "" if nowhere.
std::string find_program(const std::string& name);

// Reads the file at `path`. Recompiled: a 64-bit ELF file of this processor that needs libspillway.so or that names an
// ABI version symbol in a symbol table. Never trusts a length or an offset in the file.
ProgramFacts inspect_program(const std::string& path);

}  // namespace spw::tool
