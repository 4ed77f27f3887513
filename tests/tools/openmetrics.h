// A strict reader of OpenMetrics 1.0, for tests: as much of the format as we write, and nothing else.
//
// Taken from the specification: one TYPE, at most one UNIT and one HELP a family, before its samples and in one piece;
// names and suffixes that fit the type; units at the end of names; labels escaped, in UTF-8 and not twice the same;
// buckets that rise to +Inf and equal the count; a last line "# EOF".
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spw::tool {

struct OpenMetrics {
  struct Sample {
    std::string name;  // with its suffix
    std::vector<std::pair<std::string, std::string>> labels;
    double value = 0;
    std::string label(std::string_view label_name) const;  // "": it has none
  };
  struct Family {
    std::string name, type, unit, help;
    std::vector<Sample> samples;
  };
  std::vector<Family> families;

  // nullptr: there is none.
  const Family* family(std::string_view name) const;
  // Of the sample with this name and these labels among its own; throws std::runtime_error if there is not exactly one.
  double value(std::string_view name, const std::map<std::string, std::string>& labels = {}) const;
};

// Throws std::runtime_error, which says what is wrong in which line.
OpenMetrics read_openmetrics(std::string_view text);

}  // namespace spw::tool
