// What the wrappers have to know of a clang command line: which options are ours, which clang could not
// honour together with instrumentation, and whether this call links.
//
// Arguments are kept as they are and in their order, but for our own, which are dropped. The contents of response files
// (@file) are looked at and the argument itself is kept. Limits: response files nest kResponseDepthMax deep.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace spw::driver {

enum class Lto { kNone, kFull, kThin };

enum class EngineKind { kTranslated, kMapped, kNone };
// What code is written for when nothing is said.
inline constexpr EngineKind kEngineDefault = EngineKind::kMapped;

struct Arguments {
  std::vector<std::string> kept;
  bool instrument = true;              // -fno-spillway takes it away
  EngineKind engine = kEngineDefault;  // -fspillway-engine=
  bool count_hits = false;             // -fspillway-count
  bool durable = false;                // -fspillway-durable
  bool help = false;                   // --spillway-help
  bool version = false;                // --spillway-version
  std::optional<std::string> shell;    // of --spillway-completion=
  bool cc1 = false;                    // clang talking to itself: nothing is added
  bool has_input = false;
  bool stops_before_link = false;  // -c, -S, -E, ...
  bool relocatable = false;        // -r: links, but no libraries
  Lto lto = Lto::kNone;
  std::optional<std::string> linker;   // of -fuse-ld=
  std::optional<std::string> refusal;  // why this cannot be done, one line

  bool links() const { return has_input && !stops_before_link && !relocatable && !cc1; }
};

inline constexpr int kResponseDepthMax = 8;

Arguments classify(const std::vector<std::string>& arguments);

}  // namespace spw::driver
