// A key-value store of one file that survives a crash (durable_map.h), from the command line.
//
//   durable_map FILE put KEY VALUE     is durable when the command returns
//   durable_map FILE get KEY           exit status 1: there is none
//   durable_map FILE erase KEY         likewise
//   durable_map FILE count             after a walk over all entries
//   durable_map FILE fill N            puts "key I" to "value I" for I below N, printing I when it is durable; kill it, and look
//   durable_map FILE verify            all that fill has put, in their order, none missing up to the last one
#include "durable/durable_map.h"

#include <spillway/spillway.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace {

using examples::DurableMap;

int fail(const char* what) {
  std::fprintf(stderr, "durable_map: %s: %s\n", what, spw_error_message());
  return 2;
}

std::string key(uint64_t i) { return "key " + std::to_string(i); }
std::string value(uint64_t i) { return "value " + std::to_string(i); }

int get(DurableMap& map, const char* which) {
  const auto found = map.get(which);
  if (!found) return 1;
  std::printf("%s\n", found->c_str());
  return 0;
}

int count(DurableMap& map) {
  const uint64_t count = map.count(), found = map.walk();
  std::printf("%" PRIu64 "\n", count);
  if (count == found) return 0;
  std::fprintf(stderr, "durable_map: %" PRIu64 " entries can be reached\n", found);
  return 3;
}

int fill(DurableMap& map, uint64_t entries) {
  for (uint64_t i = 0; i < entries; ++i) {
    if (!map.put(key(i), value(i))) return fail("put");
    std::printf("%" PRIu64 "\n", i);
    std::fflush(stdout);
  }
  return 0;
}

int verify(DurableMap& map) {
  const uint64_t entries = map.count();
  for (uint64_t i = 0; i < entries; ++i) {
    if (map.get(key(i)) == value(i)) continue;
    std::fprintf(stderr, "durable_map: entry %" PRIu64 " of %" PRIu64 " is missing\n", i, entries);
    return 3;
  }
  return count(map);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 2 ? argv[2] : "";
  const int words = verb == "put" ? 5 : verb == "count" || verb == "verify" ? 3 : 4;
  if (argc != words || (words == 4 && verb != "get" && verb != "erase" && verb != "fill")) {
    std::fprintf(stderr, "usage: %s FILE put KEY VALUE | get KEY | erase KEY | count | fill N | verify\n",
                 argv[0]);
    return 2;
  }
  DurableMap map;
  if (!map.open(argv[1])) return fail("open");
  if (verb == "put") return map.put(argv[3], argv[4]) ? 0 : fail("put");
  if (verb == "get") return get(map, argv[3]);
  if (verb == "erase") return map.erase(argv[3]) ? 0 : 1;
  if (verb == "fill") return fill(map, std::strtoull(argv[3], nullptr, 10));
  return verb == "verify" ? verify(map) : count(map);
}
