// spillway check FILE: whether a persistent region hangs together, and what it holds. For rbd:POOL: check_pool.cc.
#include "durable/check.h"

#include <fmt/core.h>

#include "base/units.h"
#include "check_pool.h"
#include "commands.h"
#include "messages.h"
#include "progress.h"
#include "top/text.h"

namespace spw::tool {

namespace {

int check_region_file(const std::string& file) {
  auto checked = [&] {
    Progress progress("checking " + file);
    return durable::check_file(file, [&](uint64_t chunks, uint64_t of) { progress.at(chunks, of); });
  }();
  if (!checked) return refuse(checked.status().message());
  const durable::CheckReport& report = *checked;
  fmt::print("{}: {} objects, {}; {} of {} chunks free, {} of logs\n", file, report.objects,
             format_size(report.object_bytes), report.free_chunks, report.chunks, report.log_chunks);
  // Names are the file's words, and the file may be anybody's.
  const auto shown = [](const std::string& text) { return top::printable(text, top::Charset::kUtf8); };
  for (const std::string& root : report.roots) fmt::print("root {}\n", shown(root));
  if (report.sections_to_keep + report.sections_to_undo != 0)
    fmt::print(
        "a crash left {} complete and {} unfinished sections; the next program that opens it undoes the "
        "latter\n",
        report.sections_to_keep, report.sections_to_undo);
  for (const std::string& problem : report.problems) fmt::print("problem: {}\n", shown(problem));
  fmt::print("{}\n", report.problems.empty() ? "no problem was found" : "this region is damaged");
  return report.problems.empty() ? kExitOk : kExitMissing;
}

}  // namespace

int check_file_or_pool(const std::string& name) {
  return name.starts_with(kPoolScheme) ? check_pool(name) : check_region_file(name);
}

}  // namespace spw::tool
