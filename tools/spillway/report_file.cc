#include "report_file.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace spw::tool {

namespace {

using nlohmann::json;

std::vector<telemetry::CurvePoint> curve_of(const json& from) {
  std::vector<telemetry::CurvePoint> curve;
  for (const json& point : from.value("curve", json::array()))
    curve.push_back({point.at("memory_bytes"), point.at("reads")});
  return curve;
}

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
  facts.processor_seconds = from.value("processor_seconds", 0.0);
  facts.curve = curve_of(report);
  for (const json& area : report.value("areas", json::array()))
    facts.areas.push_back(
        {area.at("name"), area.at("object"), area.at("offset"), area.at("bytes"), curve_of(area)});
  facts.watched = from.value("watched", true);
  facts.faults_by = from.value("faults_by", "");
  facts.system_call_faults = from.value("system_call_faults", "");
  if (const json misses = from.value("misses", json::object()); !misses.empty())
    facts.misses = {misses.at("count"), misses.at("p50_ns"), misses.at("p99_ns"), misses.at("p999_ns"),
                    misses.at("worst_ns")};
  for (const json& code : report.value("foreign", json::array()))
    facts.foreign.push_back({code.at("library"), code.at("function"), code.at("faults")});
  for (const json& line : report.value("warnings", json::array())) facts.warnings.push_back(line);
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

Result<ReportFile> read_report(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) return Status::sentence(errno, fmt::format("{}: {}", file, std::strerror(errno)));
  try {
    const json report = json::parse(stream);
    const int schema = report.at("schema").get<int>();
    if (schema != telemetry::kReportSchema)
      return Status::sentence(EPROTO, fmt::format("{}: a report of schema {}, and this version reads {}",
                                                  file, schema, telemetry::kReportSchema));
    return ReportFile{facts_of(report), totals_of(report)};
  } catch (const json::exception&) {
    return Status::sentence(
        EPROTO, fmt::format("{}: it is no report of Spillway (JSON written with --stats=FILE)", file));
  }
}

}  // namespace spw::tool
