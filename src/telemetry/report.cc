#include "telemetry/report.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "base/units.h"

namespace spw::telemetry {

namespace {

constexpr int kLineBytesMax = 512;
// Functions of foreign code that the text names.
constexpr size_t kForeignNamedMax = 5;

// printf onto the end of `text`; a longer line than kLineBytesMax is cut.
[[gnu::format(printf, 2, 3)]] void append(std::string& text, const char* format, ...) {
  char line[kLineBytesMax];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
}

unsigned long long word(const Totals& totals, Counter c) { return total(totals, c); }

struct Level {
  const char* name;
  bool hits_known;
  uint64_t hits;
  uint64_t misses;
};

std::array<Level, 3> levels_of(const Totals& t) {
  const uint64_t direct_hits = total(t, Counter::direct_hits);
  return {{
      {"direct", direct_hits > 0, direct_hits, total(t, Counter::direct_misses)},
      {"private", true, total(t, Counter::private_hits), total(t, Counter::private_misses)},
      // Who waits for another thread's fill causes no transfer: a hit.
      {"shared", true, total(t, Counter::shared_hits) + total(t, Counter::shared_waits),
       total(t, Counter::shared_misses)},
  }};
}

std::string percent(std::optional<double> ratio) {
  std::string text;
  if (!ratio) return "-";
  append(text, "%.2f %%", *ratio * 100);
  return text;
}

void append_levels(std::string& text, const Totals& totals) {
  append(text, "  %-10s %16s %16s %12s\n", "level", "hits", "misses", "hit ratio");
  for (const Level& level : levels_of(totals)) {
    std::string hits = level.hits_known ? std::to_string(level.hits) : "not counted";
    std::string ratio = level.hits_known ? percent(hit_ratio(level.hits, level.misses)) : "-";
    append(text, "  %-10s %16s %16llu %12s\n", level.name, hits.c_str(),
           static_cast<unsigned long long>(level.misses), ratio.c_str());
  }
}

void append_foreign(std::string& text, const std::vector<ForeignCode>& foreign) {
  const size_t named = std::min(foreign.size(), kForeignNamedMax);
  for (size_t i = 0; i < named; ++i)
    append(text, "  %-10s %llu faults in %s of %s\n", i == 0 ? "foreign" : "",
           static_cast<unsigned long long>(foreign[i].faults), foreign[i].function.c_str(),
           foreign[i].library.c_str());
  if (named > 0) text += "             not recompiled; recompiling these would save their faults\n";
}

void append_json_string(std::string& json, std::string_view value) {
  json += '"';
  for (char c : value) {
    if (c == '"' || c == '\\')
      (json += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      append(json, "\\u%04x", c);
    else
      json += c;
  }
  json += '"';
}

void append_json_ratio(std::string& json, std::optional<double> ratio) {
  if (ratio)
    append(json, "%.6f", *ratio);
  else
    json += "null";
}

void append_json_facts(std::string& json, const Facts& facts) {
  const auto text = [&](const char* name, std::string_view value) {
    append(json, "    \"%s\": ", name);
    append_json_string(json, value);
    json += ",\n";
  };
  const auto number = [&](const char* name, uint64_t value) {
    append(json, "    \"%s\": %llu,\n", name, static_cast<unsigned long long>(value));
  };
  json += "  \"facts\": {\n";
  text("program", facts.program);
  number("process", facts.process);
  text("engine", facts.engine);
  text("store", facts.store);
  number("block_bytes", facts.block_bytes);
  number("memory_cap_bytes", facts.memory_cap_bytes);
  number("frames", facts.frames);
  number("frames_peak", facts.frames_peak);
  append(json, "    \"watched\": %s,\n", facts.watched ? "true" : "false");
  text("faults_by", facts.faults_by);
  text("system_call_faults", facts.system_call_faults);
  text("mapped_reads", facts.mapped_reads);
  append(json,
         "    \"misses\": {\"count\": %llu, \"p50_ns\": %llu, \"p99_ns\": %llu, \"p999_ns\": %llu, "
         "\"worst_ns\": %llu},\n",
         static_cast<unsigned long long>(facts.misses.count),
         static_cast<unsigned long long>(facts.misses.p50_ns),
         static_cast<unsigned long long>(facts.misses.p99_ns),
         static_cast<unsigned long long>(facts.misses.p999_ns),
         static_cast<unsigned long long>(facts.misses.worst_ns));
  number("metadata_bytes", facts.metadata_bytes);
  number("native_peak_bytes", facts.native_peak_bytes);
  number("resident_peak_bytes", facts.resident_peak_bytes);
  number("compressed_share_bytes", facts.compressed_share_bytes);
  number("compressed_peak_bytes", facts.compressed_peak_bytes);
  const PageCompression& pages = facts.compression;
  append(
      json,
      "    \"compression\": {\"tried\": %llu, \"fitted\": %llu, \"kept_bytes\": %.1f, \"compress_ns\": %.1f, "
      "\"open_ns\": %.1f},\n",
      static_cast<unsigned long long>(pages.tried), static_cast<unsigned long long>(pages.fitted),
      pages.kept_bytes, pages.compress_ns, pages.open_ns);
  append(json, "    \"processor_seconds\": %.6f,\n", facts.processor_seconds);
  append(json, "    \"wall_seconds\": %.6f\n  },\n", facts.wall_seconds);
}

void append_compressed(std::string& text, const Facts& facts, const Totals& totals) {
  const uint64_t pages = total(totals, Counter::compressed_pages);
  if (pages == 0) return;
  text += "             " + format_size(facts.compressed_peak_bytes) +
          " of it compressed pages at most, now up to " + format_size(facts.compressed_share_bytes);
  if (const uint64_t bytes = total(totals, Counter::compressed_bytes); bytes > 0)
    append(text, "; pages came to 1/%.1f",
           static_cast<double>(pages * kMmuPageBytes) / static_cast<double>(bytes));
  text += "\n";
}

}  // namespace

std::optional<double> hit_ratio(uint64_t hits, uint64_t misses) {
  if (hits + misses == 0) return std::nullopt;
  return static_cast<double>(hits) / static_cast<double>(hits + misses);
}

std::optional<double> write_amplification(const Totals& totals) {
  const uint64_t dirtied = total(totals, Counter::bytes_dirtied);
  if (dirtied == 0) return std::nullopt;
  return static_cast<double>(total(totals, Counter::store_write_bytes)) / static_cast<double>(dirtied);
}

std::string latency_text(const LatencySummary& misses) {
  if (misses.count == 0) return "-";
  const auto us = [](uint64_t ns) { return static_cast<double>(ns) / 1000; };
  std::string text;
  append(text, "%.1f us (p50), %.1f us (p99), %.1f us (p99.9), %.1f us at worst", us(misses.p50_ns),
         us(misses.p99_ns), us(misses.p999_ns), us(misses.worst_ns));
  return text;
}

std::string report_text(const Facts& facts, const Totals& t) {
  std::string text;
  text += "spillway: " + facts.program;
  append(text, " (process %llu) ran %.3f s with the %s engine\n",
         static_cast<unsigned long long>(facts.process), facts.wall_seconds, facts.engine.c_str());
  append(text,
         "  memory     cap %s; %llu frames of %s, %llu used at most; tables %s; whole process %s at most\n",
         format_size(facts.memory_cap_bytes).c_str(), static_cast<unsigned long long>(facts.frames),
         format_size(facts.block_bytes).c_str(), static_cast<unsigned long long>(facts.frames_peak),
         format_size(facts.metadata_bytes).c_str(), format_size(facts.resident_peak_bytes).c_str());
  if (facts.native_peak_bytes != 0)
    text += "             " + format_size(facts.native_peak_bytes) + " of it not managed at most\n";
  append_compressed(text, facts, t);
  if (!facts.watched) text += "             all managed memory fitted and was left to the kernel\n";
  if (!facts.faults_by.empty()) text += "             faults served by " + facts.faults_by + "\n";
  if (!facts.mapped_reads.empty())
    text += "             files that are only read are mapped by the " + facts.mapped_reads + "\n";
  if (!facts.system_call_faults.empty())
    text += "             faults of system calls: " + facts.system_call_faults + "\n";
  text += "  store      " + facts.store + "\n";
  append_levels(text, t);
  append(text,
         "  blocks     %llu zero-filled, %llu read on demand, %llu along with these, %llu ahead (%llu of "
         "them used)\n",
         word(t, Counter::zero_fills), word(t, Counter::fills), word(t, Counter::unit_fills),
         word(t, Counter::readahead_fills), word(t, Counter::readahead_hits));
  append(text, "             %llu evicted (%llu waited for a writeback), %llu written back, %llu discarded\n",
         word(t, Counter::evictions), word(t, Counter::dirty_evictions), word(t, Counter::writebacks),
         word(t, Counter::discards));
  if (facts.misses.count > 0) text += "  misses     took " + latency_text(facts.misses) + "\n";
  append(text, "  transfers  %s read in %llu requests, %s written in %llu requests, %llu retries\n",
         format_size(total(t, Counter::store_read_bytes)).c_str(), word(t, Counter::store_reads),
         format_size(total(t, Counter::store_write_bytes)).c_str(), word(t, Counter::store_writes),
         word(t, Counter::store_retries));
  if (auto ratio = write_amplification(t))
    append(text, "             write amplification %.3f (bytes written for each byte dirtied)\n", *ratio);
  append(text, "  managed    %llu allocations, %s in all\n", word(t, Counter::managed_allocations),
         format_size(total(t, Counter::managed_bytes_allocated)).c_str());
  append_foreign(text, facts.foreign);
  return text;
}

namespace {

void append_curve(std::string& json, const std::vector<CurvePoint>& curve) {
  const char* separator = "\n";
  for (const CurvePoint& point : curve) {
    append(json, "%s    {\"memory_bytes\": %llu, \"reads\": %llu}", separator,
           static_cast<unsigned long long>(point.memory_bytes), static_cast<unsigned long long>(point.reads));
    separator = ",\n";
  }
}

void append_areas(std::string& json, const std::vector<AreaReads>& areas) {
  const char* separator = "\n";
  for (const AreaReads& area : areas) {
    append(json, "%s    {\"name\": ", separator);
    append_json_string(json, area.name);
    json += ", \"object\": ";
    append_json_string(json, area.object);
    append(json, ", \"offset\": %llu, \"bytes\": %llu, \"curve\": [",
           static_cast<unsigned long long>(area.offset), static_cast<unsigned long long>(area.bytes));
    append_curve(json, area.curve);
    json += "]}";
    separator = ",\n";
  }
}

}  // namespace

std::string report_json(const Facts& facts, const Totals& totals) {
  std::string json;
  append(json, "{\n  \"schema\": %d,\n", kReportSchema);
  append_json_facts(json, facts);
  json += "  \"levels\": {";
  const char* separator = "\n";
  for (const Level& level : levels_of(totals)) {
    append(json, "%s    \"%s\": {\"hits\": %s, \"misses\": %llu, \"hit_ratio\": ", separator, level.name,
           level.hits_known ? std::to_string(level.hits).c_str() : "null",
           static_cast<unsigned long long>(level.misses));
    append_json_ratio(json, level.hits_known ? hit_ratio(level.hits, level.misses) : std::nullopt);
    json += "}";
    separator = ",\n";
  }
  json += "\n  },\n  \"curve\": [";
  append_curve(json, facts.curve);
  json += "\n  ],\n  \"areas\": [";
  append_areas(json, facts.areas);
  json += "\n  ],\n  \"foreign\": [";
  separator = "\n";
  for (const ForeignCode& code : facts.foreign) {
    append(json, "%s    {\"library\": ", separator);
    append_json_string(json, code.library);
    json += ", \"function\": ";
    append_json_string(json, code.function);
    append(json, ", \"faults\": %llu}", static_cast<unsigned long long>(code.faults));
    separator = ",\n";
  }
  json += "\n  ],\n  \"warnings\": [";
  separator = "\n    ";
  for (const std::string& line : facts.warnings) {
    json += separator;
    append_json_string(json, line);
    separator = ",\n    ";
  }
  json += "\n  ],\n  \"write_amplification\": ";
  append_json_ratio(json, write_amplification(totals));
  json += ",\n  \"counters\": {";
  separator = "\n";
  for (size_t i = 0; i < kCounterCount; ++i) {
    append(json, "%s    \"%s\": %llu", separator, counter_infos()[i].name,
           static_cast<unsigned long long>(totals[i]));
    separator = ",\n";
  }
  json += "\n  }\n}\n";
  return json;
}

std::string report_file_name(const std::string& pattern, uint64_t process) {
  std::string name = pattern;
  const std::string id = std::to_string(process);
  for (size_t at = name.find("%p"); at != name.npos; at = name.find("%p", at + id.size()))
    name.replace(at, 2, id);
  return name;
}

}  // namespace spw::telemetry
