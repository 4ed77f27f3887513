// What a shell can complete of a command line, and the scripts that have it do so. The words are those of the parser
// (CLI11) and of options.inc: nothing is listed twice.
#pragma once

#include <string>
#include <vector>

namespace spw::tool {

// What may stand where a value is expected.
struct Values {
  bool files = false;
  bool directories = false;
  std::vector<std::string> words;
};

struct Flag {
  std::string name;  // "--memory"
  std::string help;  // one line
  bool takes_value = false;
  Values values;
};

struct Command {
  std::string name;
  std::string help;
  std::vector<Flag> flags;
  Values arguments;
  bool starts_program = false;  // what follows is another program's command line
};

// Of the whole tool; `flags` are what may stand before a command.
struct CommandLine {
  std::vector<Flag> flags;
  std::vector<Command> commands;
};

inline constexpr const char* kShells[] = {"bash", "zsh", "fish"};

std::string bash_completion(const CommandLine& line);
std::string zsh_completion(const CommandLine& line);
std::string fish_completion(const CommandLine& line);

}  // namespace spw::tool
