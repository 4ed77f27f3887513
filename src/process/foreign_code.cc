#include "process/foreign_code.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

namespace spw::process {

namespace {

telemetry::ForeignCode code_at(uintptr_t instruction) {
  telemetry::ForeignCode code;
  Dl_info info;
  if (instruction == 0 || dladdr(reinterpret_cast<void*>(instruction), &info) == 0) {
    code.library = code.function = "(unknown)";
    return code;
  }
  code.library = info.dli_fname;
  if (info.dli_sname) {
    code.function = info.dli_sname;
  } else {
    char text[32];
    const auto offset = instruction - reinterpret_cast<uintptr_t>(info.dli_fbase);
    std::snprintf(text, sizeof text, "+%#zx", static_cast<size_t>(offset));
    code.function = text;
  }
  return code;
}

}  // namespace

std::vector<telemetry::ForeignCode> foreign_code(const telemetry::CallSites& sites) {
  std::map<std::pair<std::string, std::string>, uint64_t> by_name;
  for (const telemetry::CallSites::Site& site : sites.all()) {
    const telemetry::ForeignCode code = code_at(site.instruction);
    by_name[{code.library, code.function}] += site.count;
  }
  std::vector<telemetry::ForeignCode> found;
  for (const auto& [name, faults] : by_name) found.push_back({name.first, name.second, faults});
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.faults > b.faults; });
  return found;
}

}  // namespace spw::process
