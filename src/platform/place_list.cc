#include "platform/place_list.h"

#include <sys/stat.h>

#include <algorithm>

namespace spw::platform {

namespace {

constexpr std::string_view kComma = "%2C";

bool is_there(std::string_view path, bool wants_directory) {
  struct stat info{};
  return ::stat(std::string(path).c_str(), &info) == 0 && (!wants_directory || S_ISDIR(info.st_mode));
}

bool is_one_place(std::string_view value) {
  if (value.find(',') == value.npos || value.starts_with("striped:")) return true;
  const size_t scheme = value.find_first_not_of("abcdefghijklmnopqrstuvwxyz+");
  if (scheme == 0 || scheme == value.npos || value[scheme] != ':') return is_there(value, true);
  const std::string_view behind = value.substr(scheme + 1);
  if (is_there(behind, false)) return true;
  const size_t parameters = behind.find('?');
  return parameters != behind.npos && behind.find(',', parameters) == behind.npos &&
         is_there(behind.substr(0, parameters), false);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
}

}  // namespace

std::vector<std::string> split_places(std::string_view value) {
  if (is_one_place(value)) return {std::string(value)};
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= value.size();) {
    const size_t end = std::min(value.find(',', begin), value.size());
    names.emplace_back(value.substr(begin, end - begin));
    replace_all(names.back(), kComma, ",");
    begin = end + 1;
  }
  return names;
}

std::string join_places(const std::vector<std::string>& names) {
  std::string value;
  for (size_t i = 0; i < names.size(); ++i) {
    std::string name = names[i];
    replace_all(name, ",", kComma);
    value += (i == 0 ? "" : ",") + name;
  }
  return value;
}

}  // namespace spw::platform
