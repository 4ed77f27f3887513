#include "store/rbd/spill_image_name.h"

#include <array>
#include <charconv>
#include <cstdio>

namespace spw::store {

namespace {

constexpr std::string_view kPrefix = "spillway.spill.";
constexpr size_t kScopeDigits = 16;

std::optional<uint64_t> number_of(std::string_view digits, int base) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string SpillImageName::text() const {
  std::array<char, kScopeDigits + 1> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(scope));
  return std::string(kPrefix) + digits.data() + "." + std::to_string(client);
}

std::optional<SpillImageName> SpillImageName::parse(std::string_view text) {
  if (!text.starts_with(kPrefix)) return std::nullopt;
  const std::string_view rest = text.substr(kPrefix.size());
  if (rest.size() < kScopeDigits + 2 || rest[kScopeDigits] != '.') return std::nullopt;
  const auto scope = number_of(rest.substr(0, kScopeDigits), 16);
  const auto client = number_of(rest.substr(kScopeDigits + 1), 10);
  if (!scope || !client) return std::nullopt;
  const SpillImageName name{*scope, *client};
  if (name.text() != text) return std::nullopt;
  return name;
}

}  // namespace spw::store
