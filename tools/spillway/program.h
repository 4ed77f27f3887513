// What a program is, before it is started: found where, and recompiled for Spillway or not.
#pragma once

#include <string>

namespace spw::tool {

enum class ProgramKind {
  kRecompiled,
  kUnmodified,  // runs with the mapped engine preloaded
  kScript,      // so does its interpreter
  kSealed,      // unmodified, and nothing can be preloaded into it
  kPrivileged,  // of either kind, and takes nothing from its environment
  kForeign,
};

// `detail`: the interpreter of a script, the version symbol of a
// recompiled program if it has one, why a file is sealed or foreign.
struct ProgramFacts {
  ProgramKind kind = ProgramKind::kForeign;
  std::string detail;
};

// Where execvp would find `name`: itself when it has a slash, else
// the first executable of that name in PATH; "" if nowhere.
std::string find_program(const std::string& name);

// Reads the file at `path`. Recompiled: a 64-bit ELF file of this processor that needs libspillway.so or that names a
// version symbol of either kind of code in a symbol table. The file may be cut short or damaged.
// Sealed: without a dynamic loader. Privileged: with rights of its own (set-user-ID, set-group-ID, file capabilities),
// for which the loader ignores preloaded libraries, and the runtime options.
ProgramFacts inspect_program(const std::string& path);

}  // namespace spw::tool
