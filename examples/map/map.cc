// map: a container of the standard library with many small nodes: built, walked, and searched.
//
//   map [--container ordered|hashed] [--nodes N] [--finds N] [--threads T]
//
// Keys go in in ascending order, as from a sorted file; those that are found are random. Prints JSON: the seconds of
// each phase (build, walk, find), and a checksum over what the walk and the finds saw.

#include <omp.h>

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "common/options.h"
#include "common/random.h"
#include "common/report.h"

namespace {

struct Settings {
  uint64_t nodes = 0;
  uint64_t finds = 0;
  int threads = 0;
};

constexpr uint64_t kKeyStep = 3;  // two of three keys between the first and the last are in no map

template <class Map>
uint64_t sum_of_finds(const Map& map, const Settings& settings) {
  uint64_t sum = 0;
#pragma omp parallel for schedule(static) num_threads(settings.threads) reduction(+ : sum)
  for (uint64_t i = 0; i < settings.finds; ++i) {
    const auto found = map.find(examples::random_at(1, i) % settings.nodes * kKeyStep);
    if (found == map.end() || map.count(found->first + 1) != 0)
      examples::fail("a key is not where it belongs");
    sum += found->second;
  }
  return sum;
}

template <class Map>
void run(const std::string& container, const Settings& settings) {
  Map map;
  uint64_t walked = 0;
  uint64_t found = 0;
  examples::print_timed_from();
  const double build_s = examples::timed([&] {
    for (uint64_t i = 0; i < settings.nodes; ++i)
      map.emplace_hint(map.end(), i * kKeyStep, examples::random_at(2, i));
  });
  const double walk_s = examples::timed([&] {
    for (const auto& [key, value] : map) walked += key ^ value;
  });
  const double find_s = examples::timed([&] { found = sum_of_finds(map, settings); });
  examples::Json()
      .add("name", "map")
      .add("container", container)
      .add("nodes", map.size())
      .add("finds", settings.finds)
      .add("seconds", examples::Json().add("build", build_s).add("walk", walk_s).add("find", find_s))
      .add("total_s", build_s + walk_s + find_s)
      .add_hex("checksum", walked * 31 + found)
      .print();
}

}  // namespace

int main(int argc, char** argv) {
  examples::Options options(argc, argv);
  const std::string container = options.text("container", "ordered");
  Settings settings;
  settings.nodes = options.number("nodes", 1000000);
  settings.finds = options.number("finds", 100000);
  settings.threads = static_cast<int>(options.number("threads", 1));
  options.finish();
  if (settings.nodes < 1 || settings.threads < 1) examples::fail("--nodes and --threads are at least 1");
  if (container == "ordered") {
    run<std::map<uint64_t, uint64_t>>(container, settings);
  } else if (container == "hashed") {
    run<std::unordered_map<uint64_t, uint64_t>>(container, settings);
  } else {
    examples::fail("--container is ordered or hashed");
  }
  return 0;
}
