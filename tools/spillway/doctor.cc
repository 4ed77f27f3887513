#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "doctor_probes.h"
#include "messages.h"
#include "process/options.h"

namespace spw::tool {

namespace {

const char* word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kNote:
      return "note";
    case Verdict::kMissing:
      return "missing";
  }
  return "";
}

void print_text(const std::vector<Finding>& findings, bool usable) {
  for (const Finding& f : findings) {
    fmt::print("{:8} {}: {}\n", word(f.verdict), f.title, f.found);
    if (!f.costs.empty()) fmt::print("{:8}   costs: {}\n", "", f.costs);
    if (!f.mend.empty()) fmt::print("{:8}   mend:  {}\n", "", f.mend);
  }
  fmt::print("{}\n",
             usable ? "Spillway can run here." : "Spillway cannot run here until what is missing is mended.");
}

void print_json(const std::vector<Finding>& findings, bool usable) {
  nlohmann::ordered_json document = {{"usable", usable}, {"findings", nlohmann::ordered_json::array()}};
  for (const Finding& f : findings)
    document["findings"].push_back({{"id", f.id},
                                    {"verdict", word(f.verdict)},
                                    {"essential", f.essential},
                                    {"found", f.found},
                                    {"costs", f.costs},
                                    {"mend", f.mend}});
  fmt::print("{}\n", document.dump(2));
}

}  // namespace

int run_doctor(const std::string& store, bool as_json) {
  std::string directory = store;
  if (directory.empty()) {
    std::vector<std::string> warnings;
    auto options = process::options_of_process(&warnings);
    if (!options) return refuse(options.status().message());
    directory = (*options).store;
  }
  const std::vector<Finding> findings = examine_machine(directory);
  const bool usable = std::none_of(findings.begin(), findings.end(), [](const Finding& f) {
    return f.essential && f.verdict == Verdict::kMissing;
  });
  as_json ? print_json(findings, usable) : print_text(findings, usable);
  return usable ? kExitOk : kExitMissing;
}

}  // namespace spw::tool
