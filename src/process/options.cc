#include "process/options.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "platform/machine.h"
#include "platform/place_list.h"

namespace spw::process {

namespace {

constexpr std::string_view kPrefix = "SPILLWAY_";
// Variables that belong to other parts: the compiler drivers, those who look for an installation, what a run hands on
// to its processes, and the test hooks of runtime.cc.
constexpr std::string_view kOthersVariables[] = {"SPILLWAY_CLANG",
                                                 "SPILLWAY_DIR",
                                                 "SPILLWAY_STORE_TOLD",
                                                 "SPILLWAY_TREE",
                                                 "SPILLWAY_TEST_ALLOCATIONS",
                                                 "SPILLWAY_TEST_FAULTS",
                                                 "SPILLWAY_TEST_EXTENTS",
                                                 "SPILLWAY_TEST_FRAME_WAIT_MS",
                                                 "SPILLWAY_TEST_USERFAULT",
                                                 "SPILLWAY_TEST_WATCH"};
// A name that differs in more letters, or in half of them, is not a slip of the finger.
constexpr size_t kTypoDistanceMax = 3;
// Fewer letters are the beginning of too much.
constexpr size_t kBeginningMin = 2;

constexpr Accepts size(uint64_t least, uint64_t most) { return {ValueKind::kSize, least, most, {}}; }
constexpr Accepts power_of_two_size(uint64_t least, uint64_t most) {
  return {ValueKind::kPowerOfTwoSize, least, most, {}};
}
constexpr Accepts count(uint64_t least, uint64_t most) { return {ValueKind::kCount, least, most, {}}; }
constexpr Accepts one_of(std::string_view choices) { return {ValueKind::kChoice, 0, 0, choices}; }
// A word with a slash is a file's name.
constexpr Accepts one_of_or_file(std::string_view choices) {
  return {ValueKind::kChoiceOrFile, 0, 0, choices};
}
constexpr Accepts store_place() { return {ValueKind::kStore, 0, 0, {}}; }
constexpr Accepts file_name() { return {ValueKind::kFile, 0, 0, {}}; }
constexpr Accepts report_target() { return {ValueKind::kReportTarget, 0, 0, {}}; }

constexpr Accepts patterns() { return {ValueKind::kPatterns, 0, 0, {}}; }

// A member's name as it is written on a command line.
template <size_t N>
struct FlagName {
  char text[N] = {};
  constexpr explicit FlagName(const char (&name)[N]) {
    for (size_t i = 0; i < N; ++i) text[i] = name[i] == '_' ? '-' : name[i];
  }
};
#define SPW_OPTION(name, ...) constexpr FlagName kFlag_##name(#name);
#include "process/options.inc"
#undef SPW_OPTION

constexpr auto kInfos = std::to_array<OptionInfo>({
#define SPW_OPTION(name, member, page, accepts, fallback, example, help, doc) \
  {OptionId::name, kFlag_##name.text, OptionPage::page, accepts, fallback, example, help, doc},
#include "process/options.inc"
#undef SPW_OPTION
});

constexpr bool is_worked_out_at_start(std::string_view fallback) { return fallback.starts_with('('); }

std::vector<std::string_view> split_choices(std::string_view choices) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= choices.size();) {
    size_t end = std::min(choices.find('|', begin), choices.size());
    parts.push_back(choices.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string absolute_path(std::string_view path) {
  std::error_code error;
  auto absolute = std::filesystem::absolute(path, error);
  return error ? std::string(path) : absolute.lexically_normal().string();
}

// The parsers: nothing when `text` is not accepted.

std::optional<uint64_t> parse_number(const Accepts& accepts, std::string_view text) {
  std::optional<uint64_t> value;
  if (accepts.kind == ValueKind::kCount) {
    uint64_t number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc{} && end == text.data() + text.size()) value = number;
  } else {
    value = parse_size_bytes(text);
  }
  if (!value || *value < accepts.least || *value > accepts.most) return std::nullopt;
  if (accepts.kind == ValueKind::kPowerOfTwoSize && !is_power_of_two(*value)) return std::nullopt;
  return value;
}

std::optional<size_t> parse_choice(const Accepts& accepts, std::string_view text) {
  auto choices = split_choices(accepts.choices);
  auto found = std::find(choices.begin(), choices.end(), text);
  if (found == choices.end()) return std::nullopt;
  return static_cast<size_t>(found - choices.begin());
}

// assign(): one for each type that a member of Options has.

bool assign(uint64_t& member, const Accepts& accepts, std::string_view text) {
  auto value = parse_number(accepts, text);
  member = value.value_or(member);
  return value.has_value();
}

template <class Enum>
  requires std::is_enum_v<Enum>
bool assign(Enum& member, const Accepts& accepts, std::string_view text) {
  auto index = parse_choice(accepts, text);
  if (index) member = static_cast<Enum>(*index);
  return index.has_value();
}

std::string absolute_place(const std::string& name) {
  return is_store_name(name) ? name : absolute_path(name);
}

// What is wrong with a list of places; "": nothing.
std::string why_no_places(std::string_view text) {
  const std::vector<std::string> names = platform::split_places(text);
  if (names.size() > platform::kPlacesMax)
    return std::to_string(names.size()) + " places; accepted: up to " + std::to_string(platform::kPlacesMax) +
           " with commas between them";
  if (names.size() > 1 && std::ranges::find(names, "") != names.end())
    return "a comma with no name before or behind it; accepted: names with commas between them, a comma "
           "inside "
           "of one written %2C, such as /mnt/a,/mnt/b";
  return "";
}

void assign_places(std::string& member, std::string_view text) {
  std::vector<std::string> names = platform::split_places(text);
  for (std::string& name : names) name = absolute_place(name);
  member = names.size() == 1 ? names[0] : platform::join_places(names);
}

bool assign(std::string& member, const Accepts& accepts, std::string_view text) {
  if (accepts.kind == ValueKind::kStore) {
    if (!why_no_places(text).empty()) return false;
    assign_places(member, text);
    return true;
  }
  if (accepts.kind == ValueKind::kChoiceOrFile && is_file_name(text)) {
    member = absolute_path(text);
  } else if (accepts.kind == ValueKind::kChoice || accepts.kind == ValueKind::kChoiceOrFile) {
    if (!parse_choice(accepts, text)) return false;
    member = text;
  } else if (accepts.kind == ValueKind::kPatterns) {
    member = text == "none" ? std::string_view() : text;
  } else {
    member = absolute_path(text);
  }
  return true;
}

bool assign(StatsTarget& member, const Accepts&, std::string_view text) {
  if (text == "off")
    member = {StatsKind::kOff, {}};
  else if (text == "text")
    member = {StatsKind::kText, {}};
  else
    member = {StatsKind::kJson, absolute_path(text)};
  return true;
}

bool assign_member(Options& options, const OptionInfo& info, std::string_view text) {
  if (text.empty()) return false;
  switch (info.id) {
#define SPW_OPTION(name, member, ...) \
  case OptionId::name:                \
    return assign(options.member, info.accepts, text);
#include "process/options.inc"
#undef SPW_OPTION
  }
  return false;
}

Status refused(std::string_view source, std::string_view value, std::string_view why) {
  return Status::sentence(EINVAL, std::string(source) + "=" + std::string(value) + ": " + std::string(why));
}

// Levenshtein's, a row of the table at a time.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j < row.size(); ++j) {
      size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({substituted, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

std::string_view find_variable(const char* const* environment, std::string_view name) {
  for (; *environment; ++environment) {
    std::string_view entry = *environment;
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return {};
}

// Whether an entry of an environment is one of ours, and set.
bool is_nonempty_own(std::string_view entry) {
  return entry.starts_with(kPrefix) && entry.find('=') + 1 < entry.size();
}

void warn_of_unknown_variables(const char* const* environment, std::vector<std::string>* warnings) {
  std::vector<std::string> own;
  for (const OptionInfo& info : kInfos) own.push_back(environment_variable(info.name));
  std::vector<std::string_view> known(own.begin(), own.end());
  known.insert(known.end(), std::begin(kOthersVariables), std::end(kOthersVariables));
  std::vector<std::string_view> names;  // what differs: own without the prefix
  for (std::string_view variable : own) names.push_back(variable.substr(kPrefix.size()));
  for (; *environment; ++environment) {
    std::string_view name = *environment;
    name = name.substr(0, name.find('='));
    if (!name.starts_with(kPrefix) || std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string_view near = nearest_word(name.substr(kPrefix.size()), names);
    std::string line = std::string(name) + " is not an option of Spillway and is ignored";
    if (!near.empty()) line += "; did you mean " + std::string(kPrefix) + std::string(near) + "?";
    warnings->push_back(std::move(line));
  }
}

// Works out the fallbacks that depend on the machine or on other options, then checks what concerns several options.
Status finish_options(Options& options, const char* const* environment, uint64_t memory_available_bytes) {
  const auto was_set = [&](std::string_view name) {
    return !find_variable(environment, environment_variable(name)).empty();
  };
  if (!was_set("memory")) options.memory_bytes = memory_available_bytes / 4 * 3;
  if (options.memory_is_auto) options.memory_bytes = memory_available_bytes;
  if (!was_set("quota")) options.quota_bytes = options.memory_bytes / 8;
  if (!was_set("store")) {
    std::string_view temporary = find_variable(environment, "TMPDIR");
    options.store = absolute_path(temporary.empty() ? "/tmp" : temporary);
  }
  if (!was_set("map-files")) options.map_files = kMapFilesByProgram;
  if (options.high_percent < options.low_percent)
    return refused("SPILLWAY_HIGH_WATERMARK", std::to_string(options.high_percent),
                   "less than SPILLWAY_LOW_WATERMARK, which is " + std::to_string(options.low_percent) +
                       "; accepted: a number from that to 50, such as SPILLWAY_HIGH_WATERMARK=" +
                       std::to_string(options.low_percent));
  if (options.curve == Curve::kOn && !options.trace_file.empty())
    return refused("SPILLWAY_CURVE", "on", "not together with SPILLWAY_TRACE; set one of them");
  if (options.memory_bytes < kCapFramesMin * options.block_bytes)
    return refused("SPILLWAY_MEMORY", format_size(options.memory_bytes),
                   "too little for blocks of " + format_size(options.block_bytes) + "; accepted: at least " +
                       format_size(kCapFramesMin * options.block_bytes) + " (" +
                       std::to_string(kCapFramesMin) +
                       " blocks), or a smaller SPILLWAY_BLOCK, such as SPILLWAY_BLOCK=4K");
  if (options.quota_bytes > options.memory_bytes)
    return refused("SPILLWAY_QUOTA", format_size(options.quota_bytes),
                   "more than SPILLWAY_MEMORY, which is " + format_size(options.memory_bytes) +
                       "; accepted: a size up to that, such as SPILLWAY_QUOTA=" +
                       std::to_string(options.memory_bytes / 8));
  return Status::ok();
}

}  // namespace

std::span<const OptionInfo> option_infos() { return kInfos; }

std::string environment_variable(std::string_view option_name) {
  std::string variable(kPrefix);
  for (char c : option_name)
    variable += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return variable;
}

std::string accepted_values(const Accepts& accepts) {
  switch (accepts.kind) {
    case ValueKind::kSize:
      return "a size from " + format_size(accepts.least) + " to " + format_size(accepts.most);
    case ValueKind::kPowerOfTwoSize:
      return "a power of two from " + format_size(accepts.least) + " to " + format_size(accepts.most);
    case ValueKind::kCount:
      return "a number from " + std::to_string(accepts.least) + " to " + std::to_string(accepts.most);
    case ValueKind::kChoice:
    case ValueKind::kChoiceOrFile: {
      std::string text;
      for (std::string_view choice : split_choices(accepts.choices))
        text += (text.empty() ? "one of " : ", ") + std::string(choice);
      return accepts.kind == ValueKind::kChoice ? text : text + ", or the name of a file, with a slash in it";
    }
    case ValueKind::kStore:
      return "a directory, the name of a store, or up to " + std::to_string(platform::kPlacesMax) +
             " of these with commas between them";
    case ValueKind::kPatterns:
      return "path patterns, separated by colons";
    case ValueKind::kFile:
      return "the name of a file";
    case ValueKind::kReportTarget:
      return "off, text or the name of a file";
  }
  return {};
}

bool is_file_name(std::string_view value) { return value.find('/') != value.npos; }

bool is_store_name(std::string_view store) {
  size_t scheme = store.find_first_not_of("abcdefghijklmnopqrstuvwxyz+");
  return scheme != 0 && scheme != store.npos && store[scheme] == ':';
}

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  size_t best_distance = SIZE_MAX;
  for (std::string_view candidate : candidates) {
    size_t distance = edit_distance(word, candidate);
    bool is_slip = distance <= kTypoDistanceMax && 2 * distance < std::max(word.size(), candidate.size());
    bool is_beginning = word.size() >= kBeginningMin && candidate.starts_with(word);
    if ((!is_slip && !is_beginning) || distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

Status set_option(Options& options, const OptionInfo& info, std::string_view source, std::string_view value) {
  const bool is_auto = value == "auto";
  if (info.id == OptionId::memory) options.memory_is_auto = is_auto;
  if (info.id == OptionId::block) options.block_is_auto = is_auto;
  if (is_auto && info.id == OptionId::block) options.block_bytes = kAutoBlockBytes;
  if (is_auto && (info.id == OptionId::memory || info.id == OptionId::block)) return Status::ok();
  if (assign_member(options, info, value)) return Status::ok();
  if (info.accepts.kind == ValueKind::kStore) return refused(source, value, why_no_places(value));
  return refused(source, value,
                 "accepted: " + accepted_values(info.accepts) + ", such as " + std::string(source) + "=" +
                     std::string(info.example));
}

Result<Options> parse_environment(const char* const* environment, uint64_t memory_available_bytes,
                                  std::vector<std::string>* warnings) {
  warn_of_unknown_variables(environment, warnings);
  Options options;
  for (const OptionInfo& info : kInfos) {
    const std::string variable = environment_variable(info.name);
    std::string_view value = find_variable(environment, variable);
    if (value.empty()) {
      if (!is_worked_out_at_start(info.fallback))
        SPW_CHECK(set_option(options, info, variable, info.fallback).is_ok());
      continue;
    }
    if (Status status = set_option(options, info, variable, value); !status) return status;
  }
  if (Status status = finish_options(options, environment, memory_available_bytes); !status) return status;
  return options;
}

Result<Options> options_of_process(std::vector<std::string>* warnings, std::span<const std::string> first) {
  std::vector<const char*> environment;
  for (const std::string& entry : first) environment.push_back(entry.c_str());
  const bool is_trusted = ::getauxval(AT_SECURE) == 0;
  for (const char* const* entry = ::environ; *entry; ++entry) {
    if (is_trusted || !is_nonempty_own(*entry))
      environment.push_back(*entry);
    else if (warnings->empty())
      warnings->push_back(
          "this program runs with rights of its own (set-user-ID or the like): SPILLWAY_ variables are "
          "ignored");
  }
  environment.push_back(nullptr);
  auto available = platform::memory_available_bytes();
  auto limit = platform::cgroup_memory_limit_bytes();
  if (!available && !limit && find_variable(environment.data(), "SPILLWAY_MEMORY").empty())
    return Status(
        EINVAL,
        "SPILLWAY_MEMORY is not set and this machine does not say how much memory is available; set it, "
        "such as SPILLWAY_MEMORY=4G");
  const uint64_t machine_bytes = available ? *available : UINT64_MAX;
  return parse_environment(environment.data(), std::min(machine_bytes, limit.value_or(UINT64_MAX)), warnings);
}

}  // namespace spw::process
