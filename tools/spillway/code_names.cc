#include "code_names.h"

#include <fmt/core.h>

#include <cstdio>
#include <sstream>

namespace spw::tool {

namespace {

// One line of /proc/PID/maps.
struct Line {
  uint64_t begin = 0, end = 0;
  std::string path;
};

bool parse(const std::string& text, Line* line) {
  unsigned long long begin = 0, end = 0;
  int path_at = 0;
  if (std::sscanf(text.c_str(), "%llx-%llx %*s %*s %*s %*s %n", &begin, &end, &path_at) != 2 || path_at == 0)
    return false;
  *line = {begin, end, text.substr(static_cast<size_t>(path_at))};
  return !line->path.empty() && line->path.front() == '/';
}

// An address, by the file that is mapped there; no file: counted from zero.
struct Place {
  std::string file;
  uint64_t offset = 0;
};
// Files are loaded from their beginning on, so a path's first line says where.
Place place_of(uint64_t address, const std::string& maps) {
  std::istringstream lines(maps);
  Line first, line;
  for (std::string text; std::getline(lines, text);) {
    if (!parse(text, &line)) continue;
    if (line.path != first.path) first = line;
    if (address >= line.begin && address < line.end) return {line.path, address - first.begin};
  }
  return {"", address};
}

}  // namespace

std::string text_of(const CodeName& name) {
  if (name.library.empty()) return fmt::format("{:#x}", name.offset);
  std::string place = fmt::format("{}+{:#x}", name.library, name.offset);
  if (name.function.empty()) return place;
  return fmt::format("{} ({}){}", name.function, name.source.empty() ? place : name.source,
                     name.inside.empty() ? "" : ", in " + name.inside);
}

CodeName CodeNames::name(const std::string& file, uint64_t offset, uint64_t shown_offset) {
  CodeName result;
  result.offset = shown_offset;
  if (file.empty()) return result;
  if (answers_.size() >= kAnswersMax) answers_.clear();
  const auto [answer, is_new] = answers_.try_emplace({file, offset});
  if (is_new) answer->second = process_.look_up(file, offset);
  result.function = answer->second.function;
  result.inside = answer->second.inside;
  result.source = answer->second.source;
  result.library = printable(file.substr(file.rfind('/') + 1));
  return result;
}

CodeName CodeNames::at(const std::string& file, uint64_t offset) { return name(file, offset, offset); }

CodeName CodeNames::of_call(const std::string& file, uint64_t offset) {
  return name(file, offset == 0 ? 0 : offset - 1, offset);
}

CodeName CodeNames::at_address(uint64_t address, const std::string& maps) {
  const Place place = place_of(address, maps);
  return at(place.file, place.offset);
}

CodeName CodeNames::of_call_at_address(uint64_t address, const std::string& maps) {
  const Place place = place_of(address, maps);
  return of_call(place.file, place.offset);
}

}  // namespace spw::tool
