// micro: one kernel after another, timed, each alone on its data.
//
//   micro KERNEL [--bytes B] [--ops N] [--rounds R] [--warmups W] [--threads T]
//   micro file-read --file FILE [--advice none|random] [--latencies PERCENT] [--ops N] [...]
//   micro file-hits --file FILE --hot B --hits PERCENT [--read 8|4096] [--advice none|random] [--ops N] [...]
//   micro file-sort --file FILE [--threads T]
//   micro file-graph --file FILE --bytes B [--ops EDGES] [--threads T]
//   micro file-make --file FILE --bytes B
//
// KERNEL: sum random-read random-update scan-and-update chase stencil sort-words sort-records radix-sort hash-join
// join-probe map-find. Prints JSON: `seconds` is the median of the timed rounds and `total_s` their sum, `ops` and
// `checksum` are those of one round. With --latencies each read is timed: `latency_ns` has percentiles of the
// slowest PERCENT of them, which are the misses where so many miss, and the worst. file-sort sorts the file's own
// words, in place and once. file-graph makes the file, B bytes long, and builds a graph in it.

#include <cstdio>
#include <functional>
#include <map>
#include <string>

#include "common/options.h"
#include "common/report.h"
#include "micro/adjacency.h"
#include "micro/algorithms.h"
#include "micro/arrays.h"
#include "micro/file.h"
#include "micro/harness.h"
#include "micro/hits.h"
#include "micro/join.h"
#include "micro/latencies.h"
#include "micro/radix.h"
#include "micro/stencil.h"

namespace {

using examples::Measured;
using examples::Settings;

const std::map<std::string, std::function<Measured(const Settings&)>>& kernels() {
  static const std::map<std::string, std::function<Measured(const Settings&)>> all = {
      {"sum", examples::sequential_sum},
      {"random-read", examples::random_read},
      {"random-update", examples::random_update},
      {"scan-and-update", examples::scan_and_update},
      {"chase", examples::chase},
      {"sort-words", examples::sort_words},
      {"sort-records", examples::sort_records},
      {"radix-sort", examples::radix_sort},
      {"hash-join", examples::hash_join},
      {"join-probe", examples::join_probe},
      {"map-find", examples::map_find},
      {"stencil", examples::stencil},
  };
  return all;
}

examples::Json report(const std::string& name, const Settings& settings, const Measured& measured) {
  const double timed_ops = static_cast<double>(measured.ops) * static_cast<double>(measured.round_s.size());
  return examples::Json()
      .add("name", name)
      .add("seconds", measured.median_s())
      .add("total_s", measured.total_s())
      .add("ops", measured.ops)
      .add("rounds", settings.rounds)
      .add("threads", settings.threads)
      .add("bytes", settings.bytes)
      .add("processor_s", measured.processor_s)
      .add("processor_ns_per_op", measured.processor_s * 1e9 / timed_ops)
      .add_hex("checksum", measured.checksum);
}

}  // namespace

int main(int argc, char** argv) {
  examples::Options options(argc, argv);
  Settings settings;
  settings.bytes = options.number("bytes", 256 << 20);
  settings.ops = options.number("ops", 10000000);
  settings.rounds = static_cast<int>(options.number("rounds", 3));
  settings.warmups = static_cast<int>(options.number("warmups", 1));
  settings.threads = static_cast<int>(options.number("threads", 1));
  const std::string file = options.text("file", "");
  const std::string advice = options.text("advice", "none");
  const examples::Hits hits{options.number("hot", 0), options.number("hits", 100), options.number("read", 8)};
  const uint64_t slowest_percent = options.number("latencies", 0);
  options.finish();
  if (settings.rounds < 1 || settings.threads < 1) examples::fail("--rounds and --threads are at least 1");
  if (settings.bytes < 4096 * static_cast<uint64_t>(settings.threads)) examples::fail("--bytes is too small");
  if (slowest_percent > 100) examples::fail("--latencies is a percentage");
  if (advice != "none" && advice != "random") examples::fail("--advice is none or random");

  const std::string name = options.words().empty() ? "" : options.words()[0];
  if (name == "file-make") {
    examples::make_word_file(file, settings.bytes);
  } else if (name == "file-read") {
    examples::Latencies latencies;
    const Measured measured =
        examples::file_read(settings, file, advice == "random", slowest_percent == 0 ? nullptr : &latencies);
    examples::Json text = report(name, settings, measured);
    if (slowest_percent != 0) text.add("latency_ns", latencies.report(slowest_percent));
    text.print();
  } else if (name == "file-hits") {
    const Measured measured = examples::file_hits(settings, file, hits, advice == "random");
    report(name, settings, measured).print();
  } else if (name == "file-sort") {
    const Measured measured = examples::file_sort(settings, file);
    report(name, settings, measured).print();
  } else if (name == "file-graph") {
    const Measured measured = examples::file_graph(settings, file);
    report(name, settings, measured).print();
  } else if (kernels().count(name) != 0) {
    report(name, settings, kernels().at(name)(settings)).print();
  } else {
    examples::fail("unknown kernel '" + name + "'");
  }
  return 0;
}
