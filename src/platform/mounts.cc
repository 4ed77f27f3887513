#include "platform/mounts.h"

#include <algorithm>
#include <fstream>
#include <vector>

namespace spw::platform {

namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    if (end > at) words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// ID PARENT MAJOR:MINOR ROOT PLACE OPTIONS [TAGS...] - TYPE SOURCE OPTIONS
std::optional<Mount> mount_of(const std::string& line) {
  constexpr size_t kId = 0, kDevice = 2, kPlace = 4, kTags = 6;
  const auto words = words_of(line);
  if (words.size() <= kTags) return std::nullopt;
  const auto dash = std::find(words.begin() + kTags, words.end(), "-");
  if (words.end() - dash < 3) return std::nullopt;
  return Mount{words[kId], words[kDevice], unescaped(words[kPlace]), dash[1], unescaped(dash[2])};
}

}  // namespace

std::optional<Mount> find_mount(const std::function<bool(const Mount&)>& is_it) {
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);)
    if (auto mount = mount_of(line); mount && is_it(*mount)) return mount;
  return std::nullopt;
}

std::string unescaped(std::string_view text) {
  constexpr size_t kDigits = 3;
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && at + kDigits < text.size()) {
      plain += static_cast<char>((text[at + 1] - '0') * 64 + (text[at + 2] - '0') * 8 + (text[at + 3] - '0'));
      at += kDigits;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

}  // namespace spw::platform
