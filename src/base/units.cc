#include "base/units.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>

namespace spw {

namespace {

// The shift of a unit such as "", "k", "MB" or "GiB"; nothing for anything else.
std::optional<unsigned> unit_shift(std::string_view unit) {
  if (unit.empty()) return 0;
  auto lower = [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); };
  constexpr std::string_view kLetters = "bkmgt";
  size_t at = kLetters.find(lower(unit[0]));
  if (at == std::string_view::npos) return std::nullopt;
  unit.remove_prefix(1);
  bool bytes_only = at == 0;
  if (!unit.empty() && !bytes_only && lower(unit[0]) == 'i') {
    unit.remove_prefix(1);
    if (unit.empty()) return std::nullopt;  // "Ki" without its B
  }
  if (!unit.empty() && !bytes_only && lower(unit[0]) == 'b') unit.remove_prefix(1);
  if (!unit.empty()) return std::nullopt;
  return static_cast<unsigned>(at * 10);
}

}  // namespace

std::optional<uint64_t> parse_size_bytes(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc{} || number < 0) return std::nullopt;
  while (rest != end && *rest == ' ') ++rest;
  auto shift = unit_shift(std::string_view(rest, static_cast<size_t>(end - rest)));
  if (!shift) return std::nullopt;
  double bytes = number * static_cast<double>(uint64_t{1} << *shift);
  if (!(bytes < 9.2e18)) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

std::string format_size(uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

}  // namespace spw
