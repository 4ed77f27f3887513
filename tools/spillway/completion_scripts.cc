// The three shells' scripts. Each knows which words are options with a value, so that a value is never taken for the
// program, and hands the program's own words over to the program's completion.
#include <fmt/core.h>

#include <algorithm>

#include "completion.h"

namespace spw::tool {

namespace {

std::string joined(const std::vector<std::string>& words, const char* by) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : by) + word;
  return text;
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

// Within '...' of a shell.
std::string in_quotes(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }

std::string names_of(const std::vector<Flag>& flags, bool only_with_value, const char* by) {
  std::vector<std::string> names;
  for (const Flag& flag : flags)
    if (flag.takes_value || !only_with_value) names.push_back(flag.name);
  return joined(names, by);
}

std::string command_names(const CommandLine& line, bool only_starting, const char* by) {
  std::vector<std::string> names;
  for (const Command& command : line.commands)
    if (command.starts_program || !only_starting) names.push_back(command.name);
  return joined(names, by);
}

// bash: the arguments of _spillway_offer.
std::string bash_offer(const Values& values) {
  return fmt::format("_spillway_offer {} {}", in_quotes(joined(values.words, " ")),
                     values.files         ? "-f"
                     : values.directories ? "-d"
                                          : "''");
}

constexpr const char* kBashHead = R"(# bash completion for spillway; made by `spillway completion bash`.

# _spillway_offer WORDS [-f|-d]: these words, files or directories that begin as the word to be completed.
_spillway_offer() {
  local IFS=$'\n'
  COMPREPLY=($(IFS=' '; compgen -W "$1" -- "$word"))
  [ -z "$2" ] || { compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen "$2" -- "$word")); }
}

# Where the program's own words begin: behind --, or with the first word that is no option and no option's value.
_spillway_program() {
  local i
  for ((i = 2; i < COMP_CWORD; ++i)); do
    case ${COMP_WORDS[i]} in
      --) program=$((i + 1)); return ;;
      @WITH_VALUE@) if [ "${COMP_WORDS[i + 1]}" = = ]; then ((i += 2)); else ((++i)); fi ;;
      -* | =) ;;
      *) program=$i; return ;;
    esac
  done
}

_spillway() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} program=0
  # --engine=mapped is three words to bash.
  if [ "$word" = = ]; then word=; elif [ "$before" = = ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then _spillway_offer '@COMMANDS@' ''; return; fi
  case ${COMP_WORDS[1]} in
    @STARTING@)
      _spillway_program
      if [ "$program" -gt 0 ]; then
        if declare -F _command_offset >/dev/null; then _command_offset "$program"; else _spillway_offer '' -f; fi
        return
      fi
      ;;
  esac
  case "${COMP_WORDS[1]} $before" in
)";

}  // namespace

std::string bash_completion(const CommandLine& line) {
  std::string with_value;
  for (const Command& command : line.commands)
    if (command.starts_program) with_value = names_of(command.flags, true, " | ");
  std::string text = replaced(kBashHead, "@WITH_VALUE@", with_value);
  text =
      replaced(text, "@COMMANDS@", command_names(line, false, " ") + " " + names_of(line.flags, false, " "));
  text = replaced(text, "@STARTING@", command_names(line, true, " | "));
  for (const Command& command : line.commands)
    for (const Flag& flag : command.flags)
      if (flag.takes_value)
        text += fmt::format("    '{} {}') {}; return ;;\n", command.name, flag.name, bash_offer(flag.values));
  text += "  esac\n  case \"${COMP_WORDS[1]} $word\" in\n";
  for (const Command& command : line.commands) {
    text += fmt::format("    '{} -'*) _spillway_offer {} '' ;;\n", command.name,
                        in_quotes(names_of(command.flags, false, " ")));
    if (command.starts_program)
      text += fmt::format("    '{} '*) COMPREPLY=($(compgen -c -- \"$word\")) ;;\n", command.name);
    else
      text += fmt::format("    '{} '*) {} ;;\n", command.name, bash_offer(command.arguments));
  }
  return text + "  esac\n}\ncomplete -F _spillway spillway\n";
}

namespace {

// Within a specification of _arguments, where colons and brackets mean something.
std::string zsh_text(const std::string& text) {
  std::string escaped = replaced(text, "\\", "\\\\");
  for (const char* special : {":", "[", "]"})
    escaped = replaced(escaped, special, std::string("\\") + special);
  return escaped;
}

std::string zsh_action(const Values& values) {
  const std::string words = joined(values.words, " ");
  if (values.files && !words.empty()) return fmt::format("{{compadd {}; _files}}", words);
  if (values.files) return "_files";
  if (values.directories) return "_files -/";
  return words.empty() ? " " : "(" + words + ")";
}

std::string zsh_flag(const Flag& flag) {
  const std::string text =
      fmt::format("{}{}[{}]", flag.name, flag.takes_value ? "=" : "", zsh_text(flag.help));
  return in_quotes(flag.takes_value ? text + ":value:" + zsh_action(flag.values) : text);
}

}  // namespace

std::string zsh_completion(const CommandLine& line) {
  std::string text =
      "#compdef spillway\n# zsh completion for spillway; made by `spillway completion zsh`.\n\n_spillway() "
      "{\n"
      "  local curcontext=$curcontext state line\n  local -a ours=(\n";
  for (const Command& command : line.commands)
    text += "    " + in_quotes(command.name + ":" + zsh_text(command.help)) + "\n";
  text += "  )\n  _arguments -C";
  for (const Flag& flag : line.flags) text += " " + zsh_flag(flag);
  text +=
      " '1:command:->command' '*::argument:->arguments'\n"
      "  case $state in\n    command) _describe command ours ;;\n    arguments)\n"
      "      case $words[1] in\n";
  for (const Command& command : line.commands) {
    text += fmt::format("        {})\n          _arguments", command.name);
    for (const Flag& flag : command.flags) text += " \\\n            " + zsh_flag(flag);
    if (command.starts_program)
      text += " \\\n            '(-)1:program: _command_names -e' '*::argument:_normal'";
    else if (const std::string action = zsh_action(command.arguments); action != " ")
      text += " \\\n            " + in_quotes("1:argument:" + action);
    text += "\n          ;;\n";
  }
  return text +
         "      esac\n      ;;\n  esac\n}\n\n"
         "if [ \"$funcstack[1]\" = _spillway ]; then _spillway \"$@\"; else compdef _spillway spillway; fi\n";
}

namespace {

std::string fish_flag(const std::string& condition, const Flag& flag) {
  std::string text = fmt::format("complete -c spillway -n {} -l {} -d {}", in_quotes(condition),
                                 flag.name.substr(2), in_quotes(flag.help));
  if (!flag.takes_value) return text + "\n";
  text += flag.values.files ? " -r -F" : " -x";
  if (flag.values.directories) text += " -a '(__fish_complete_directories)'";
  if (!flag.values.words.empty()) text += " -a " + in_quotes(joined(flag.values.words, " "));
  return text + "\n";
}

}  // namespace

std::string fish_completion(const CommandLine& line) {
  std::string text =
      "# fish completion for spillway; made by `spillway completion fish`.\ncomplete -c spillway -f\n";
  for (const Flag& flag : line.flags) text += fish_flag("__fish_use_subcommand", flag);
  for (const Command& command : line.commands) {
    text += fmt::format("complete -c spillway -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        in_quotes(command.help));
    const std::string condition = "__fish_seen_subcommand_from " + command.name;
    for (const Flag& flag : command.flags) text += fish_flag(condition, flag);
    std::string offered = joined(command.arguments.words, " ");
    if (command.starts_program)
      offered =
          fmt::format("(__fish_complete_subcommand --fcs-skip=2 {})", names_of(command.flags, true, " "));
    if (!offered.empty())
      text += fmt::format("complete -c spillway -n {} -x -a {}\n", in_quotes(condition), in_quotes(offered));
    if (command.arguments.files) text += fmt::format("complete -c spillway -n {} -F\n", in_quotes(condition));
  }
  return text;
}

}  // namespace spw::tool
