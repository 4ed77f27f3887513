// `spillway completion SHELL`: what the parser knows, as a script for a shell.
#include "completion.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

#include "commands.h"
#include "completion_command.h"
#include "process/options.h"

namespace spw::tool {

namespace {

std::vector<std::string> parted(std::string_view text, char by) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(by), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// From what --help calls the value: FILE and DIRECTORY are that, other capitals cannot be completed, and small letters
// are what is typed ("off|text|FILE").
Values values_called(const std::string& type_name) {
  Values values;
  for (const std::string& word : parted(type_name, '|')) {
    if (word == "FILE")
      values.files = true;
    else if (word == "DIRECTORY")
      values.directories = true;
    else if (!word.empty() && std::islower(static_cast<unsigned char>(word[0])))
      values.words.push_back(word);
  }
  return values;
}

// "spilled data [as for run]": what stands in brackets says what holds when nothing is given.
std::string first_line(const std::string& description) {
  const std::string line = description.substr(0, description.find('\n'));
  return line.substr(0, line.rfind(" ["));
}

std::vector<Flag> flags_of(const CLI::App& app) {
  std::vector<Flag> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      Flag flag{"--" + name, first_line(option->get_description()), option->get_items_expected_max() > 0, {}};
      if (flag.takes_value) flag.values = values_called(option->get_type_name());
      for (const process::OptionInfo& info : process::option_infos())
        if (info.name == name && flag.takes_value && !info.accepts.choices.empty())
          flag.values.words = parted(info.accepts.choices, '|');
      flags.push_back(std::move(flag));
    }
  }
  return flags;
}

Command command_of(const CLI::App& app) {
  Command command{app.get_name(), first_line(app.get_description()), flags_of(app), {}, false};
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = option->get_name();
    if (name == "PROGRAM")
      command.starts_program = true;
    else if (name == "PAGE")
      command.arguments.words = option_page_names();
    else if (name == "SHELL")
      command.arguments.words.assign(std::begin(kShells), std::end(kShells));
    else
      command.arguments = values_called(name);
  }
  return command;
}

}  // namespace

int print_completion(const CLI::App& app, const std::string& shell) {
  CommandLine line{flags_of(app), {}};
  for (const CLI::App* command : app.get_subcommands({})) line.commands.push_back(command_of(*command));
  if (shell == "bash")
    fmt::print("{}", bash_completion(line));
  else if (shell == "zsh")
    fmt::print("{}", zsh_completion(line));
  else
    fmt::print("{}", fish_completion(line));
  return 0;
}

}  // namespace spw::tool
