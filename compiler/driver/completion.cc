#include "driver/completion.h"

#include <vector>

#include "driver/own_options.h"

namespace spw::driver {

namespace {

std::vector<std::string> choices_of(const OwnOption& option) {
  std::vector<std::string> choices;
  std::string_view rest = option.choices;
  while (!rest.empty()) {
    const size_t end = rest.find(' ');
    choices.emplace_back(rest.substr(0, end));
    rest = end == rest.npos ? "" : rest.substr(end + 1);
  }
  return choices;
}

// Every word that can be typed: an option with choices once for each.
std::string all_words() {
  std::string words;
  for (const OwnOption& option : kOwnOptions) {
    if (option.choices.empty()) words += std::string(option.name) + " ";
    for (const std::string& choice : choices_of(option)) words += std::string(option.name) + choice + " ";
  }
  words.pop_back();
  return words;
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

// clang --autocomplete=-fsan prints what may follow, a tab and what it is for; bash takes '=' for a word of its own.
constexpr const char* kBash =
    R"script(# bash completion for spillway-clang; made by `spillway-clang --spillway-completion=bash`.
_spillway_clang() {
  local line=${COMP_LINE:0:COMP_POINT} word offered own IFS=$' \t\n'
  case $line in *[[:space:]]) word= ;; *) word=${line##*[[:space:]]} ;; esac
  COMPREPLY=()
  case $word in
    -*=*)
      # Whose value begins with nothing is asked for by -std=, and so on; what is shown has no name of the option.
      offered="$(${SPILLWAY_CLANG:-@CLANG@} --autocomplete="${word/=/=,}" 2>/dev/null | cut -f 1)"
      for own in @WORDS@; do case $own in "${word%%=*}="*) offered+=" ${own#*=}" ;; esac; done
      COMPREPLY=($(compgen -W "$offered" -- "${word#*=}"))
      ;;
    -*)
      offered="@WORDS@ $(${SPILLWAY_CLANG:-@CLANG@} --autocomplete="$word" 2>/dev/null | cut -f 1)"
      COMPREPLY=($(compgen -W "$offered" -- "$word"))
      case ${COMPREPLY[0]} in *=) compopt -o nospace 2>/dev/null ;; esac
      ;;
    *)
      compopt -o filenames 2>/dev/null
      IFS=$'\n'
      COMPREPLY=($(compgen -f -- "$word"))
      ;;
  esac
}
complete -F _spillway_clang spillway-clang spillway-clang++
)script";

constexpr const char* kZsh =
    R"script(#compdef spillway-clang spillway-clang++
# zsh completion for spillway-clang; made by `spillway-clang --spillway-completion=zsh`.
_spillway-clang() {
  local -a own=(
@DESCRIBED@  )
  case $PREFIX in -*) _describe -o option own ;; esac
  local service=clang
  _gcc "$@"
}
if [ "$funcstack[1]" = _spillway-clang ]; then _spillway-clang "$@"; else compdef _spillway-clang spillway-clang spillway-clang++; fi
)script";

std::string zsh_described() {
  std::string lines;
  for (const OwnOption& option : kOwnOptions) {
    const std::string help(option.help);
    if (option.choices.empty()) lines += "    '" + std::string(option.name) + ":" + help + "'\n";
    for (const std::string& choice : choices_of(option))
      lines += "    '" + std::string(option.name) + choice + ":" + help + "'\n";
  }
  return lines;
}

std::string fish_script() {
  std::string text =
      "# fish completion for spillway-clang; made by `spillway-clang --spillway-completion=fish`.\n";
  for (const char* program : {"spillway-clang", "spillway-clang++"}) {
    const std::string complete = std::string("complete -c ") + program;
    text += complete + " -w clang\n";
    for (const OwnOption& option : kOwnOptions) {
      const bool is_long = option.name.starts_with("--");
      std::string_view name = option.name.substr(is_long ? 2 : 1);
      if (name.ends_with('=')) name.remove_suffix(1);
      text += complete + (is_long ? " -l " : " -o ") + std::string(name);
      if (!option.choices.empty()) text += " -x -a '" + std::string(option.choices) + "'";
      text += " -d '" + std::string(option.help) + "'\n";
    }
  }
  return text;
}

}  // namespace

std::optional<std::string> completion_script(std::string_view shell, const std::string& clang) {
  if (shell == "bash") return replaced(replaced(kBash, "@WORDS@", all_words()), "@CLANG@", clang);
  if (shell == "zsh") return replaced(kZsh, "@DESCRIBED@", zsh_described());
  if (shell == "fish") return fish_script();
  return std::nullopt;
}

}  // namespace spw::driver
