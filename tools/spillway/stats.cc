#include <fmt/core.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "messages.h"
#include "telemetry/report.h"

namespace spw::tool {

namespace {

using nlohmann::json;

telemetry::Facts facts_of(const json& report) {
  const json& from = report.at("facts");
  telemetry::Facts facts;
  from.at("program").get_to(facts.program);
  from.at("process").get_to(facts.process);
  from.at("engine").get_to(facts.engine);
  from.at("store").get_to(facts.store);
  from.at("block_bytes").get_to(facts.block_bytes);
  from.at("memory_cap_bytes").get_to(facts.memory_cap_bytes);
  from.at("frames").get_to(facts.frames);
  from.at("frames_peak").get_to(facts.frames_peak);
  from.at("metadata_bytes").get_to(facts.metadata_bytes);
  from.at("resident_peak_bytes").get_to(facts.resident_peak_bytes);
  from.at("wall_seconds").get_to(facts.wall_seconds);
  facts.watched = from.value("watched", true);
  facts.system_call_faults = from.value("system_call_faults", "");
  for (const json& code : report.value("foreign", json::array()))
    facts.foreign.push_back({code.at("library"), code.at("function"), code.at("faults")});
  return facts;
}

// A counter that the report does not know was not counted by the version that wrote it: 0.
telemetry::Totals totals_of(const json& report) {
  const json& from = report.at("counters");
  telemetry::Totals totals{};
  for (size_t i = 0; i < telemetry::kCounterCount; ++i)
    totals[i] = from.value(telemetry::counter_infos()[i].name, uint64_t{0});
  return totals;
}

}  // namespace

int show_stats(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) return refuse(fmt::format("{}: {}", file, std::strerror(errno)));
  try {
    const json report = json::parse(stream);
    const int schema = report.at("schema").get<int>();
    if (schema != telemetry::kReportSchema)
      return refuse(fmt::format("{}: a report of schema {}, and this version reads {}", file, schema,
                                telemetry::kReportSchema));
    fmt::print("{}", telemetry::report_text(facts_of(report), totals_of(report)));
  } catch (const json::exception&) {
    return refuse(fmt::format("{}: it is no report of Spillway (JSON written with --stats=FILE)", file));
  }
  return kExitOk;
}

}  // namespace spw::tool
