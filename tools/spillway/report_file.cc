#include "report_file.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "top/text.h"

namespace spw::tool {

namespace {

using nlohmann::json;

struct NotAReport {};

// What a report has a count in is a whole number that is not negative.
uint64_t count_in(const json& value) {
  if (!value.is_number_unsigned()) throw NotAReport{};
  return value.get<uint64_t>();
}

// For terminals: words of programs and files, and of a file that may be anybody's.
std::string words_in(const json& value) {
  return top::printable(value.get_ref<const std::string&>(), top::Charset::kUtf8);
}

std::vector<telemetry::CurvePoint> curve_of(const json& from) {
  std::vector<telemetry::CurvePoint> curve;
  for (const json& point : from.value("curve", json::array()))
    curve.push_back({count_in(point.at("memory_bytes")), count_in(point.at("reads"))});
  return curve;
}

telemetry::Facts facts_of(const json& report) {
  const json& from = report.at("facts");
  telemetry::Facts facts;
  facts.program = words_in(from.at("program"));
  facts.process = count_in(from.at("process"));
  facts.engine = words_in(from.at("engine"));
  facts.store = words_in(from.at("store"));
  facts.block_bytes = count_in(from.at("block_bytes"));
  facts.memory_cap_bytes = count_in(from.at("memory_cap_bytes"));
  facts.frames = count_in(from.at("frames"));
  facts.frames_peak = count_in(from.at("frames_peak"));
  facts.metadata_bytes = count_in(from.at("metadata_bytes"));
  facts.resident_peak_bytes = count_in(from.at("resident_peak_bytes"));
  from.at("wall_seconds").get_to(facts.wall_seconds);
  facts.processor_seconds = from.value("processor_seconds", 0.0);
  facts.curve = curve_of(report);
  for (const json& area : report.value("areas", json::array()))
    facts.areas.push_back({words_in(area.at("name")), area.at("object"), count_in(area.at("offset")),
                           count_in(area.at("bytes")), curve_of(area)});
  facts.watched = from.value("watched", true);
  facts.faults_by = words_in(from.value("faults_by", json("")));
  facts.system_call_faults = words_in(from.value("system_call_faults", json("")));
  if (const json misses = from.value("misses", json::object()); !misses.empty())
    facts.misses = {count_in(misses.at("count")), count_in(misses.at("p50_ns")),
                    count_in(misses.at("p99_ns")), count_in(misses.at("p999_ns")),
                    count_in(misses.at("worst_ns"))};
  if (const json pages = from.value("compression", json::object()); !pages.empty())
    facts.compression = {count_in(pages.at("tried")), count_in(pages.at("fitted")), pages.at("kept_bytes"),
                         pages.at("compress_ns"), pages.at("open_ns")};
  for (const json& code : report.value("foreign", json::array()))
    facts.foreign.push_back(
        {words_in(code.at("library")), words_in(code.at("function")), count_in(code.at("faults"))});
  for (const json& line : report.value("warnings", json::array())) facts.warnings.push_back(words_in(line));
  return facts;
}

// A counter that the report does not know was not counted by the version that wrote it: 0.
telemetry::Totals totals_of(const json& report) {
  const json& from = report.at("counters");
  telemetry::Totals totals{};
  for (size_t i = 0; i < telemetry::kCounterCount; ++i)
    totals[i] = count_in(from.value(telemetry::counter_infos()[i].name, json(uint64_t{0})));
  return totals;
}

}  // namespace

Result<ReportFile> read_report(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) return Status::sentence(errno, fmt::format("{}: {}", file, std::strerror(errno)));
  const Status no_report = Status::sentence(
      EPROTO, fmt::format("{}: it is no report of Spillway (JSON written with --stats=FILE)", file));
  try {
    const json report = json::parse(stream);
    const uint64_t schema = count_in(report.at("schema"));
    if (schema != uint64_t{telemetry::kReportSchema})
      return Status::sentence(EPROTO, fmt::format("{}: a report of schema {}, and this version reads {}",
                                                  file, schema, telemetry::kReportSchema));
    return ReportFile{facts_of(report), totals_of(report)};
  } catch (const json::exception&) {
    return no_report;
  } catch (const NotAReport&) {
    return no_report;
  }
}

}  // namespace spw::tool
