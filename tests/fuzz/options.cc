// Environments: Spillway's options, UMap's, the names of techniques, and words that were nearly right. And what those
// who ask for --metrics send, and where it is served.
//
// The input has an entry a line, as "SPILLWAY_MEMORY=1G".
#include "process/options.h"

#include <vector>

#include "base/check.h"
#include "config.h"
#include "durable/combining/write_combiner.h"
#include "input.h"
#include "metrics_listener.h"
#include "metrics_text.h"

namespace {

using namespace spw;

constexpr size_t kEntriesMax = 64;

void check_invariants(const process::Options& options) {
  SPW_CHECK(is_power_of_two(options.block_bytes));
  SPW_CHECK(options.block_bytes >= 4 * kKiB && options.block_bytes <= 2 * kMiB);
  SPW_CHECK(options.memory_bytes >= process::kCapFramesMin * options.block_bytes);
  SPW_CHECK(options.quota_bytes <= options.memory_bytes && options.low_percent <= options.high_percent);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  fuzz::Input input(data, bytes);
  std::vector<std::string> entries;
  while (!input.is_over() && entries.size() < kEntriesMax) entries.push_back(input.line());
  std::vector<const char*> environment;
  for (const std::string& entry : entries) environment.push_back(entry.c_str());
  environment.push_back(nullptr);
  std::vector<std::string> warnings;
  if (auto options = process::parse_environment(environment.data(), 8 * kGiB, &warnings))
    check_invariants(*options);
  const Umap::Config config = Umap::read_config(environment.data());
  SPW_CHECK(config.page_bytes != 0);
  for (const std::string& entry : entries) {
    (void)durable::parse_technique(entry, {});
    (void)tool::asks_for_openmetrics(entry);
    (void)tool::parse_listen_address(entry);
  }
  return 0;
}
