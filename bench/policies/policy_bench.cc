// Miss ratios of all policies on synthetic traces and on traces in files, as JSON; and what the estimates of miss-ratio
// curves cost and how far off they are.
//
//   policy_bench [--accesses N] [--data N] [--shares POLICY] [TRACE...]
//
// --shares: instead, what the best fixed shares of memory for parts of the data would miss with this policy.
// TRACE: a file of 64-bit block numbers, as `spillway run --trace` writes them.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lab/locality/reuse_sampler.h"
#include "lab/locality/stack_distances.h"
#include "lab/locality/whole_trace.h"
#include "lab/policies/shares.h"
#include "lab/policies/simulate.h"
#include "lab/policies/traces.h"

namespace {

using nlohmann::json;
using spw::lab::NamedTrace;
using spw::locality::MissRatioCurve;

constexpr double kSizes[] = {0.02, 0.05, 0.1, 0.2, 0.4, 0.6};  // of the trace's data
constexpr unsigned kRepeatsMax = 3;                            // of correlated traces

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

NamedTrace read_trace(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "policy_bench: cannot read the trace %s\n", path.c_str());
    std::exit(1);
  }
  NamedTrace trace{path.substr(path.rfind('/') + 1), {}};
  uint64_t block;
  while (file.read(reinterpret_cast<char*>(&block), sizeof block)) trace.blocks.push_back(block);
  return trace;
}

json miss_ratios(const NamedTrace& trace, uint64_t data) {
  json rows = json::array();
  for (const double share : kSizes) {
    const auto frames = static_cast<uint32_t>(std::max(16.0, share * static_cast<double>(data)));
    json row = {{"size", share}, {"frames", frames}};
    for (const std::string_view policy : spw::lab::policy_names())
      row["miss_ratio"][std::string(policy)] = spw::lab::miss_ratio(policy, frames, trace.blocks);
    rows.push_back(row);
  }
  return rows;
}

constexpr double kSharedSizes[] = {0.1, 0.4};

json shares(std::string_view policy, const NamedTrace& trace, uint64_t data) {
  json rows = json::array();
  for (const double share : kSharedSizes) {
    const auto frames = static_cast<uint32_t>(std::max(256.0, share * static_cast<double>(data)));
    const double accesses = static_cast<double>(trace.blocks.size());
    const auto least = static_cast<double>(spw::lab::misses_with_best_shares(policy, frames, trace.blocks));
    rows.push_back({{"size", share},
                    {"shared", spw::lab::miss_ratio(policy, frames, trace.blocks)},
                    {"best_shares", least / accesses}});
  }
  return rows;
}

// `make`: the curve.
template <class Make>
json estimate(const NamedTrace& trace, const MissRatioCurve& exact, Make make) {
  const double start_s = now_s();
  const MissRatioCurve curve = make();
  const double ns = (now_s() - start_s) * 1e9 / static_cast<double>(trace.blocks.size());
  return {{"error", spw::lab::mean_error(curve, exact, exact.largest_size())}, {"ns_per_access", ns}};
}

json estimates(const NamedTrace& trace, const MissRatioCurve& exact) {
  return {
      {"timescale reuse",
       estimate(trace, exact, [&] { return spw::lab::curve_of(spw::lab::timescale_reuse(trace.blocks)); })},
      {"sample", estimate(trace, exact,
                          [&] {
                            spw::lab::ReuseSampler sampler(0.1);
                            for (const uint64_t block : trace.blocks) sampler.access(block);
                            return sampler.footprint().curve();
                          })},
      {"exact", estimate(trace, exact, [&] { return spw::lab::exact_curve(trace.blocks); })},
  };
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t accesses = 2'000'000;
  uint32_t data = 40'000;
  std::string shares_policy;
  std::vector<NamedTrace> traces;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--accesses" && i + 1 < argc)
      accesses = std::stoull(argv[++i]);
    else if (word == "--data" && i + 1 < argc)
      data = static_cast<uint32_t>(std::stoul(argv[++i]));
    else if (word == "--shares" && i + 1 < argc)
      shares_policy = argv[++i];
    else
      traces.push_back(read_trace(word));
  }
  for (const NamedTrace& plain : spw::lab::all_traces(accesses, data)) {
    traces.push_back(plain);
    traces.push_back(spw::lab::correlated(plain, kRepeatsMax, 1));
  }
  json report = json::array();
  for (const NamedTrace& trace : traces) {
    const uint64_t distinct = spw::lab::stack_distances(trace.blocks)[0];
    if (!shares_policy.empty()) {
      report.push_back({{"trace", trace.name}, {"shares", shares(shares_policy, trace, distinct)}});
      continue;
    }
    const MissRatioCurve exact = spw::lab::exact_curve(trace.blocks);
    report.push_back({{"trace", trace.name},
                      {"accesses", trace.blocks.size()},
                      {"data", distinct},
                      {"miss_ratios", miss_ratios(trace, distinct)},
                      {"estimates", estimates(trace, exact)}});
  }
  std::printf("%s\n", report.dump().c_str());
  return 0;
}
