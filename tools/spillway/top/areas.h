// Which pieces of managed memory a running program misses most: allocations, by who made them, and mapped files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "code_names.h"
#include "telemetry/live_page.h"
#include "top/numbers.h"

namespace spw::tool::top {

struct AreaUse {
  uint64_t begin = 0,
           bytes = 0;  // its address; 0, 0: what lies in no area: small objects, and what is gone meanwhile
  double misses = 0;   // since the last look
  double share = 0;    // of all misses
  std::string name;    // "32.0 MiB at 0x..., allocated in f() (prog+0x1234)", or a file's; printable
  std::string maker;   // "f() (prog+0x1234)", or the file's name
};

class Areas {
 public:
  explicit Areas(uint64_t process) : process_(process) {}
  // All there are; the most missed first, of equal ones the largest. Misses are those since the last call; at the first
  // there are none.
  std::vector<AreaUse> look(const telemetry::LivePage& page, const PageFacts& facts);

 private:
  void name(AreaUse& use, const telemetry::Area& area);
  const std::string& maker_at(uint64_t site);

  static constexpr size_t kKnownMax = 4096;  // names, before they are looked up anew
  uint64_t process_;
  bool is_first_ = true;
  telemetry::LivePage::MissCounts before_;
  CodeNames names_;
  std::map<uint64_t, std::string> makers_;  // by site
};

// For each of the hottest a line: "  93 %  32.0 MiB at 0x..., allocated in f() (prog+0x1234)".
std::vector<std::string> hottest_lines(const std::vector<AreaUse>& uses);

}  // namespace spw::tool::top
