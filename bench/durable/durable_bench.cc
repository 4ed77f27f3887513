// A workload of durable sections, with one technique of writing lines
// back; prints one line of JSON. Run by bench/durable.py.
//
//   durable_bench --path FILE [--workload NAME] [--technique NAME] [--domain auto|pmem|block] [--burst STORES]
//                 [--size N] [--rounds N] [--profile yes]
//
// FILE is made, and removed in the end. --technique: as spw_durable_open() takes
// it. --profile: all stores are watched, and `profiled_lines` is the size that an
// offline choice would take. Without --size, what the workload has in the paper.
#include <spillway/spillway.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "durable/workload.h"

namespace {

using nlohmann::json;
using spw::bench::die;
using spw::bench::die_of_error;
using spw::bench::Run;
using spw::bench::Workload;

std::map<std::string, std::string> parse(int argc, char** argv) {
  std::map<std::string, std::string> options = {
      {"path", ""},   {"workload", "queue"}, {"technique", "adaptive"}, {"domain", "auto"},
      {"burst", "0"}, {"size", "0"},         {"rounds", "1"},           {"profile", "no"}};
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string word = argv[i];
    if (word.rfind("--", 0) != 0 || !options.contains(word.substr(2)))
      die(("unknown option " + word).c_str());
    options[word.substr(2)] = argv[i + 1];
  }
  if (argc % 2 == 0) die("each option has one value");
  if (options["path"].empty()) die("--path FILE is missing");
  return options;
}

const Workload& find(const std::string& name) {
  std::string names;
  for (const Workload& workload : spw::bench::workloads()) {
    if (workload.name == name) return workload;
    names += std::string("\n  ") + workload.name + ": " + workload.what;
  }
  die(("no workload " + name + "; there are" + names).c_str());
}

json figures(const spw_durable_statistics& of) {
  const double ratio =
      of.stores == 0 ? 0 : static_cast<double>(of.lines_flushed) / static_cast<double>(of.stores);
  return {{"stores", of.stores},   {"lines_flushed", of.lines_flushed},
          {"flush_ratio", ratio},  {"sections", of.sections},
          {"records", of.records}, {"log_bytes", of.log_bytes}};
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> options = parse(argc, argv);
  const auto number = [&options](const char* name) { return std::stoull(options[name]); };
  const Workload& workload = find(options["workload"]);
  const std::string path = options["path"];

  spw_durable_options how{};
  how.size = sizeof how;
  how.domain = options["domain"].c_str();
  how.technique = options["technique"].c_str();
  how.burst_stores = number("burst");
  how.flags = options["profile"] == "yes" ? SPW_DURABLE_PROFILE : 0;
  ::unlink(path.c_str());
  spw_durable* region = nullptr;
  if (spw_durable_open(path.c_str(), &how, &region) != 0) die_of_error("spw_durable_open");

  const uint64_t size = number("size");
  Run run(region, size == 0 ? workload.size : size, number("rounds"));
  workload.run(run);

  json line = figures(run.of_all());
  line["workload"] = workload.name;
  line["technique"] = options["technique"];
  line["seconds"] = run.seconds();
  line["papers_part"] = figures(run.of_papers_part());
  line["lines"] = run.of_all().lines;
  line["line_bytes"] = run.of_all().line_bytes;
  line["profiled_lines"] = spw_durable_profiled_lines(region);
  if (spw_durable_close(region) != 0) die_of_error("spw_durable_close");
  ::unlink(path.c_str());
  std::printf("%s\n", line.dump().c_str());
}
