#include "store/uri.h"

#include <algorithm>
#include <charconv>

#include "base/units.h"

namespace spw::store {

namespace {

Status refused(const std::string& whole, const std::string& why) {
  return Status::sentence(EINVAL, whole + ": " + why);
}

std::string joined(std::span<const std::string_view> names) {
  std::string text;
  for (std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

}  // namespace

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      decoded += text[at];
      continue;
    }
    unsigned code = 0;
    const char* digits = text.data() + at + 1;
    if (at + 2 >= text.size()) return std::nullopt;
    auto [end, error] = std::from_chars(digits, digits + 2, code, 16);
    // A zero byte would end the name where it is used, and be another name's than the one that was looked at.
    if (error != std::errc{} || end != digits + 2 || code == 0) return std::nullopt;
    decoded += static_cast<char>(code);
    at += 2;
  }
  return decoded;
}

const std::string* Uri::find(std::string_view name) const {
  auto found = parameters.find(name);
  return found == parameters.end() ? nullptr : &found->second;
}

Result<std::optional<uint64_t>> Uri::size(std::string_view name) const {
  const std::string* text = find(name);
  if (!text) return std::optional<uint64_t>();
  auto bytes = parse_size_bytes(*text);
  if (!bytes || *bytes == 0)
    return refused(whole, std::string(name) + " has to be a size such as 64M, not \"" + *text + "\"");
  return bytes;
}

Result<uint64_t> Uri::number(std::string_view name, uint64_t least, uint64_t most, uint64_t fallback) const {
  const std::string* text = find(name);
  if (!text) return fallback;
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size() || value < least || value > most)
    return refused(whole, std::string(name) + " has to be a number from " + std::to_string(least) + " to " +
                              std::to_string(most) + ", not \"" + *text + "\"");
  return value;
}

Result<Uri> parse_uri(std::string_view scheme, std::string_view rest,
                      std::span<const std::string_view> known) {
  Uri uri;
  uri.whole = std::string(scheme) + std::string(rest);
  size_t question = rest.find('?');
  uri.path = rest.substr(0, question);
  std::string_view query = question == rest.npos ? std::string_view() : rest.substr(question + 1);
  while (!query.empty()) {
    size_t end = std::min(query.find('&'), query.size());
    std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    size_t equals = pair.find('=');
    std::string_view name = pair.substr(0, equals);
    if (std::ranges::find(known, name) == known.end())
      return refused(uri.whole,
                     "\"" + std::string(name) + "\" is none of its parameters, which are " + joined(known));
    auto value = equals == pair.npos ? std::nullopt : percent_decoded(pair.substr(equals + 1));
    if (!value) return refused(uri.whole, "\"" + std::string(pair) + "\" is not name=value");
    if (!uri.parameters.emplace(name, *value).second)
      return refused(uri.whole, std::string(name) + " is given twice");
  }
  return uri;
}

}  // namespace spw::store
