// kv: a key-value workload on a table in a mapped file, with what is written kept in memory.
//
//   kv make --file FILE --pairs N
//   kv run --file FILE [--ops N] [--threads T] [--seed S] [--advice none|random]
//
// Each value that is read is checked against what was written. Prints JSON; `checksum` counts what was found, and is
// the same whoever compiled the program and however many threads it has.

#include <omp.h>

#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common/options.h"
#include "common/report.h"
#include "kv/mixgraph.h"
#include "kv/table.h"

namespace {

using examples::Key;
using examples::Operation;

// What was written, before the table.
class Written {
 public:
  void put(uint64_t number, std::string value) {
    Shard& shard = shard_of(number);
    const std::lock_guard<std::mutex> lock(shard.mutex);
    shard.values[number] = std::move(value);
  }
  bool get(uint64_t number, std::string& value) {
    Shard& shard = shard_of(number);
    const std::lock_guard<std::mutex> lock(shard.mutex);
    const auto found = shard.values.find(number);
    if (found == shard.values.end()) return false;
    value = found->second;
    return true;
  }

 private:
  struct Shard {
    std::mutex mutex;
    std::map<uint64_t, std::string> values;
  };
  Shard& shard_of(uint64_t number) { return shards_[examples::mix(number) % shards_.size()]; }

  std::vector<Shard> shards_{64};
};

void check(std::string_view value, uint64_t number, uint64_t version) {
  const size_t last = value.size() - 1;
  if (value.size() != examples::value_bytes(number, version) ||
      value[0] != examples::value_byte(number, version, 0) ||
      value[last] != examples::value_byte(number, version, last))
    examples::fail("key " + std::to_string(number) + " has a wrong value");
}

struct Workload {
  const examples::Table& table;
  const examples::MixGraph mix;
  const uint64_t seed;
  Written written{};

  // What was found.
  uint64_t one(uint64_t i) {
    const uint64_t number = mix.key(seed, i);
    switch (mix.operation(seed, i)) {
      case Operation::kGet: {
        if (std::string value; written.get(number, value)) {
          check(value, number, 1);
          return 1;
        }
        check(table.get(Key(number), number), number, 0);
        return 1;
      }
      case Operation::kPut:
        written.put(number, examples::value_of(number, 1));
        return 0;
      case Operation::kScan: {
        uint64_t rows = 0;
        table.scan(number, mix.scan_rows(seed, i),
                   [&](const examples::Table::Row& row) { rows += !row.value.empty(); });
        return rows;
      }
    }
    return 0;
  }
};

void run(const std::string& file, uint64_t ops, int threads, uint64_t seed, bool expect_random) {
  const examples::Table table(file, expect_random);
  Workload workload{table, examples::MixGraph(table.pairs()), seed};
  uint64_t found = 0;
  examples::print_timed_from();
  const double processor_start_s = examples::processor_s(), start_s = examples::now_s();
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads) reduction(+ : found)
  for (uint64_t i = 0; i < ops; ++i) found += workload.one(i);
  const double seconds = examples::now_s() - start_s;
  examples::Json()
      .add("name", "kv")
      .add("pairs", table.pairs())
      .add("bytes", table.bytes())
      .add("ops", ops)
      .add("threads", threads)
      .add("seconds", seconds)
      .add("total_s", seconds)
      .add("processor_s", examples::processor_s() - processor_start_s)
      .add_hex("checksum", found)
      .print();
}

}  // namespace

int main(int argc, char** argv) {
  examples::Options options(argc, argv);
  const std::string what = options.words().empty() ? "" : options.words()[0];
  const std::string file = options.text("file", ""), advice = options.text("advice", "none");
  const uint64_t pairs = options.number("pairs", 1000000), ops = options.number("ops", 1000000);
  const auto threads = static_cast<int>(options.number("threads", 1));
  const uint64_t seed = options.number("seed", 1);
  options.finish();
  if (file.empty()) examples::fail("--file names the table");
  if (advice != "none" && advice != "random") examples::fail("--advice is none or random");
  if (threads < 1 || pairs < 1000) examples::fail("--threads is at least 1, --pairs 1000");
  if (what == "make")
    examples::Table::make(file, pairs);
  else if (what == "run")
    run(file, ops, threads, seed, advice == "random");
  else
    examples::fail("what to do is make or run");
  return 0;
}
