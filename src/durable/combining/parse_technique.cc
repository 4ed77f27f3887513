#include <charconv>
#include <optional>
#include <string>

#include "durable/combining/write_combiner.h"

namespace spw::durable {

namespace {

struct Name {
  std::string_view name;
  Technique technique;
};

constexpr Name kNames[] = {
    {"eager", Technique::kEager}, {"er", Technique::kEager},          {"lazy", Technique::kLazy},
    {"la", Technique::kLazy},     {"table", Technique::kTable},       {"at", Technique::kTable},
    {"sc", Technique::kAdaptive}, {"adaptive", Technique::kAdaptive}, {"none", Technique::kNone},
    {"best", Technique::kNone},
};

Status refuse(std::string_view text, const std::string& why) {
  return Status::sentence(
      EINVAL, "\"" + std::string(text) + "\" " + why +
                  "; the techniques are eager, lazy, table, adaptive, fixed:SIZE (SIZE from 1 to " +
                  std::to_string(kCombinerSizeMax) +
                  " lines) and none, in the paper's words er, la, at, sc, sc:SIZE and best");
}

// Digits and nothing else, in range.
std::optional<uint32_t> size_of(std::string_view digits) {
  uint32_t size = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, size);
  if (error != std::errc() || stopped != end || size < 1 || size > kCombinerSizeMax) return std::nullopt;
  return size;
}

}  // namespace

Result<CombinerOptions> parse_technique(std::string_view text, CombinerOptions defaults) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  if (colon != std::string_view::npos && (name == "fixed" || name == "sc")) {
    const std::optional<uint32_t> size = size_of(text.substr(colon + 1));
    if (!size)
      return refuse(text,
                    "has no size between 1 and " + std::to_string(kCombinerSizeMax) + " after its colon");
    defaults.technique = Technique::kFixed;
    defaults.fixed_size = *size;
    return defaults;
  }
  if (text == "fixed") return refuse(text, "needs a size");
  for (const Name& known : kNames) {
    if (known.name != name) continue;
    if (colon != std::string_view::npos)
      return refuse(text, "has a size, which this technique does not take");
    defaults.technique = known.technique;
    return defaults;
  }
  return refuse(text, "is not a technique of write combining");
}

}  // namespace spw::durable
