// The wrappers' own options: --spillway-help and the shells' completion are made of these. arguments.cc takes them.
#pragma once

#include <array>
#include <string_view>

namespace spw::driver {

struct OwnOption {
  std::string_view name;     // ends with '=' if one of `choices` follows
  std::string_view choices;  // parted by spaces
  std::string_view help;
};

inline constexpr auto kOwnOptions = std::to_array<OwnOption>({
    {"-fno-spillway", "", "compile and link as plain clang would"},
    {"-fspillway-engine=", "mapped translated none",
     "write code for this engine: mapped (the default) or translated; or none, which manages no memory"},
    {"-fspillway-durable", "", "announce stores to persistent memory, for durable sections; with any engine"},
    {"-fspillway-count", "", "count translations that the direct SATC answers (slower; see --stats)"},
    {"--spillway-version", "", "the version, the clang it runs and the pass it loads"},
    {"--spillway-completion=", "bash zsh fish", "print a script by which this shell completes these options"},
    {"--spillway-help", "", "this text"},
});

}  // namespace spw::driver
