// Names of stores, their parts, sizes and fault plans.
//
// What a name opens is not opened but for memory and stripes of it: a fuzzer that names files and hosts finds some.
#include "base/check.h"
#include "base/units.h"
#include "input.h"
#include "platform/place_list.h"
#include "store/fault_plan.h"
#include "store/nbd/nbd_address.h"
#include "store/open_store.h"
#include "store/rbd/rbd_address.h"
#include "store/striped/striped_name.h"
#include "store/uri.h"

namespace {

using namespace spw;

constexpr uint64_t kMemoryBytesMax = 64 * kMiB;

// Every size in it is small, and nothing in it is outside of the process.
bool is_harmless(const std::string& name) {
  if (name.find_first_of("/.") != name.npos) return false;
  for (const char* scheme : {"file:", "spill:", "sparse:", "nbd", "rbd:"})
    if (name.find(scheme) != name.npos) return false;
  for (size_t at = 0; (at = name.find("memory:", at)) != name.npos; ++at) {
    const size_t begin = at + 7, end = std::min(name.find_first_of(",%", begin), name.size());
    const auto bytes = parse_size_bytes(name.substr(begin, end - begin));
    if (bytes && *bytes > kMemoryBytesMax) return false;
  }
  return true;
}

void parse_all(const std::string& name) {
  if (auto decoded = store::percent_decoded(name)) SPW_CHECK(decoded->find('\0') == decoded->npos);
  constexpr std::string_view kParameters[] = {"segment", "size", "mode"};
  if (auto uri = store::parse_uri("sparse:", name, kParameters)) {
    (void)uri->size("size");
    (void)uri->number("segment", 1, 9, 4);
  }
  for (const char* scheme : {"nbd:", "nbd+unix:"}) {
    auto address = store::NbdAddress::parse(scheme, name);
    if (!address) continue;
    SPW_CHECK(address->connections >= 1 && address->connections <= store::kNbdConnectionsMax);
    SPW_CHECK(address->timeout_seconds >= 1 && address->timeout_seconds <= store::kNbdTimeoutSecondsMax);
  }
  if (auto address = store::RbdAddress::parse(name)) {
    SPW_CHECK(!address->pool.empty() && !address->id.empty());
    SPW_CHECK(address->timeout_seconds >= 1 && address->timeout_seconds <= store::kRbdTimeoutSecondsMax);
  }
  if (auto striped = store::parse_striped(name, kMiB))
    SPW_CHECK(striped->members.size() <= store::kStripedMembersMax);
  if (const auto places = platform::split_places(name); places.size() > 1)
    SPW_CHECK(platform::join_places(places) == name);
  if (auto bytes = parse_size_bytes(name)) (void)format_size(*bytes);
  (void)store::FaultPlan::parse(name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  std::string name(reinterpret_cast<const char*>(data), bytes);
  name.resize(std::min(name.find('\0'), name.size()));  // names come as C strings
  parse_all(name);
  if (is_harmless(name)) (void)store::open_store(name);
  return 0;
}
