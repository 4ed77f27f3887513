#include "metrics_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <set>
#include <span>
#include <string_view>
#include <utility>

namespace spw::tool {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD: something that cannot be shown

double seconds(double ns) { return ns / 1e9; }

// How many bytes the character at the beginning of `text` has; 0: that is not UTF-8. `text` is not empty.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return 0;
  for (size_t i = 1; i < bytes; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Longer than it has to be, half of a pair, or above the last one.
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) >= 0xa0) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) >= 0x90) return 0;
  return bytes;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

// What is left of a name that may be any bytes: UTF-8 of kLabelBytesMax bytes at most, escaped.
std::string label_value(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    const unsigned char first = static_cast<unsigned char>(text[0]);
    const bool is_shown = bytes > 1 || (bytes == 1 && (first >= 0x20 || first == '\n') && first != 0x7f);
    const std::string_view shown = is_shown ? text.substr(0, bytes) : kReplacement;
    if (out.size() + shown.size() > kLabelBytesMax) break;
    out += shown;
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return escaped(out);
}

std::string label(std::string_view name, std::string_view value) {
  return fmt::format("{}=\"{}\"", name, label_value(value));
}

// Families one after the other, each with its samples.
class Text {
 public:
  // `unit`: "": none. `family` ends with it.
  void begin(std::string family, std::string_view type, std::string_view unit, std::string_view help) {
    family_ = std::move(family);
    out_ += fmt::format("# TYPE {} {}\n", family_, type);
    if (!unit.empty()) out_ += fmt::format("# UNIT {} {}\n", family_, unit);
    out_ += fmt::format("# HELP {} {}\n", family_, escaped(help));
  }
  // Of the family that was begun last. `labels`: as they stand between the braces; "": none.
  template <class Number>
  void sample(std::string_view suffix, std::string_view labels, Number value) {
    out_ += labels.empty() ? fmt::format("{}{} {}\n", family_, suffix, value)
                           : fmt::format("{}{}{{{}}} {}\n", family_, suffix, labels, value);
  }
  std::string end() { return std::move(out_) + "# EOF\n"; }

 private:
  std::string out_, family_;
};

// A process that is told of, with the labels of its samples.
struct Told {
  const ProcessNow* process;
  std::string labels;
};

std::vector<Told> told_of(const RunNow& run) {
  std::vector<Told> told;
  std::set<std::string> seen;  // two samples with the same labels are an error
  for (const ProcessNow& process : run.processes) {
    if (told.size() == kProcessesMax) break;
    std::string labels = fmt::format("{},{}", label("pid", fmt::to_string(process.process)),
                                     label("program", process.program));
    if (seen.insert(labels).second) told.push_back({&process, std::move(labels)});
  }
  return told;
}

void add_run(Text& text, const RunNow& run, size_t told) {
  const auto gauge = [&](const char* name, std::string_view unit, uint64_t value, const char* help) {
    text.begin(fmt::format("spillway_run_{}", name), "gauge", unit, help);
    text.sample("", "", value);
  };
  const auto counter = [&](const char* name, std::string_view unit, auto value, const char* help) {
    text.begin(fmt::format("spillway_run_{}", name), "counter", unit, help);
    text.sample("_total", "", value);
  };
  if (!run.version.empty()) {
    text.begin("spillway_build", "info", "", "the version of Spillway");
    text.sample("_info", label("version", run.version), 1);
  }
  if (run.cap_bytes != 0)
    gauge("memory_cap_bytes", "bytes", run.cap_bytes, "the memory that all processes may hold together");
  if (run.resident_bytes != 0)
    gauge("resident_bytes", "bytes", run.resident_bytes, "the memory that all processes hold together");
  if (run.needs_bytes != 0)
    gauge("needs_bytes", "bytes", run.needs_bytes, "about what they would hold without Spillway");
  counter("spilled_bytes", "bytes", run.totals.spilled_bytes,
          "the program's own memory that was written to the store");
  counter("read_bytes", "bytes", run.totals.read_bytes, "what was read from stores and mapped files");
  counter("misses", "", run.totals.misses, "blocks that were read because somebody needed them");
  counter("waited_seconds", "seconds", seconds(static_cast<double>(run.totals.waited_ns)),
          "time that threads waited for blocks to be read");
  counter("processor_seconds", "seconds", seconds(static_cast<double>(run.totals.processor_ns)),
          "processor time");
  gauge("processes", "", run.processes.size(), "processes that run");
  gauge("processes_left_out", "", run.processes.size() - told,
        "of spillway_run_processes: those that no metric of a process tells of, as there are too many");
}

// A number of each process that is known of any.
void add_process_gauge(Text& text, const std::vector<Told>& told, const char* name, std::string_view unit,
                       uint64_t ProcessNow::* number, const char* help) {
  const auto known = [&](const Told& one) { return one.process->*number != 0; };
  if (std::none_of(told.begin(), told.end(), known)) return;
  text.begin(fmt::format("spillway_process_{}", name), "gauge", unit, help);
  for (const Told& one : told)
    if (known(one)) text.sample("", one.labels, one.process->*number);
}

void add_process_facts(Text& text, const std::vector<Told>& told) {
  text.begin("spillway_process", "info", "", "how the process is run: engine and store");
  for (const Told& one : told)
    text.sample("_info",
                fmt::format("{},{},{}", one.labels, label("engine", one.process->engine),
                            label("store", one.process->store)),
                1);
  add_process_gauge(text, told, "memory_cap_bytes", "bytes", &ProcessNow::memory_cap_bytes,
                    "the memory that the process may hold, of what the run may");
  add_process_gauge(text, told, "resident_bytes", "bytes", &ProcessNow::resident_bytes,
                    "the memory that the process holds");
  add_process_gauge(text, told, "block_bytes", "bytes", &ProcessNow::block_bytes, "the size of its blocks");
  add_process_gauge(text, told, "frames", "", &ProcessNow::frames, "slots in memory for blocks");
}

// The middle of a class; of the last one, which has no end, its beginning.
double class_middle_ns(size_t index) {
  using telemetry::latency_class_end_ns;
  if (index == 0) return static_cast<double>(latency_class_end_ns(0)) / 2;
  const auto begin = static_cast<double>(latency_class_end_ns(index - 1));
  if (index == telemetry::kClasses - 1) return begin;
  return (begin + static_cast<double>(latency_class_end_ns(index))) / 2;
}

// Buckets end at powers of two of nanoseconds, where classes end, too. Ours ends before its bound, and theirs with it:
// of times that are exactly the bound, to the nanosecond, we say that they took longer.
void add_miss_durations(Text& text, const Told& one) {
  const telemetry::Latencies& misses = one.process->misses;
  uint64_t count = 0;
  double sum_ns = 0;
  for (size_t i = 0; i < telemetry::kClasses; ++i) {
    count += misses.counts[i];
    sum_ns += static_cast<double>(misses.counts[i]) * class_middle_ns(i);
    const uint64_t end_ns = telemetry::latency_class_end_ns(i);
    if (i == telemetry::kClasses - 1 || !std::has_single_bit(end_ns)) continue;
    const double end_s = seconds(static_cast<double>(end_ns));
    text.sample("_bucket", fmt::format("{},le=\"{}\"", one.labels, end_s), count);
  }
  text.sample("_bucket", one.labels + ",le=\"+Inf\"", count);
  text.sample("_count", one.labels, count);
  text.sample("_sum", one.labels, seconds(sum_ns));
}

void add_misses(Text& text, const std::vector<Told>& told) {
  text.begin(
      "spillway_process_miss_duration_seconds", "histogram", "seconds",
      "how long misses took; the sum is estimated from classes of an eighth of a doubling, to a sixteenth");
  for (const Told& one : told) add_miss_durations(text, one);
  text.begin("spillway_process_miss_worst_seconds", "gauge", "seconds", "the longest miss so far");
  for (const Told& one : told)
    text.sample("", one.labels, seconds(static_cast<double>(one.process->misses.worst_ns)));
}

// How a counter is called here: with its unit last, which is a base unit.
struct CounterFamily {
  std::string name, unit;
  bool is_ns = false;
};

CounterFamily family_of(const telemetry::CounterInfo& info) {
  CounterFamily family{fmt::format("spillway_process_{}", info.name), "", false};
  const std::string_view unit = info.unit;
  if (unit == "nanoseconds") {
    if (family.name.ends_with("_ns")) family.name.resize(family.name.size() - 3);
    family.name += "_seconds";
    family.unit = "seconds";
    family.is_ns = true;
  } else if (unit == "bytes") {
    constexpr std::string_view kWord = "_bytes";
    if (const size_t at = family.name.find(kWord); at != family.name.npos)
      family.name.erase(at, kWord.size());
    family.name += kWord;
    family.unit = "bytes";
  }
  return family;
}

void add_counters(Text& text, const std::vector<Told>& told) {
  std::string before;
  for (size_t i = 0; i < telemetry::kCounterCount; ++i) {
    const telemetry::CounterInfo& info = telemetry::counter_infos()[i];
    const CounterFamily family = family_of(info);
    // In the list it follows what it is a part of; here it is read by itself.
    constexpr std::string_view kPart = "of those, ";
    std::string help = info.text;
    if (help.starts_with(kPart)) help = fmt::format("of {}: {}", before, help.substr(kPart.size()));
    text.begin(family.name, "counter", family.unit, help);
    for (const Told& one : told) {
      const uint64_t value = one.process->totals[i];
      if (family.is_ns)
        text.sample("_total", one.labels, seconds(static_cast<double>(value)));
      else
        text.sample("_total", one.labels, value);
    }
    before = family.name;
  }
}

// "# TYPE name counter" -> {"TYPE", "name", "counter"}.
struct Description {
  std::string_view what, name, rest;
};
Description description_of(std::string_view line) {
  line.remove_prefix(2);
  const auto word = [&] {
    const std::string_view first = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(first.size() + 1, line.size()));
    return first;
  };
  Description description;
  description.what = word();
  description.name = word();
  description.rest = line;
  return description;
}

// Where OpenMetrics escapes quotes in what is said about a metric, too.
std::string without_escaped_quotes(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      if (text[i + 1] != '"') out += text[i];
      ++i;
    }
    out += text[i];
  }
  return out;
}

// The piece of `text` before the separator, which is taken away with it; without blanks around it, in small letters.
std::string take_piece(std::string_view& text, char separator) {
  const std::string_view piece = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(piece.size() + 1, text.size()));
  std::string out;
  for (const char c : piece)
    if (c != ' ' && c != '\t') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

}  // namespace

std::string metrics_text(const RunNow& run) {
  const std::vector<Told> told = told_of(run);
  Text text;
  add_run(text, run, told.size());
  add_process_facts(text, told);
  add_misses(text, told);
  add_counters(text, told);
  return text.end();
}

// There a family has the name of its samples, and no unit and end; info is not known.
std::string prometheus_text(const std::string& openmetrics) {
  std::string out, name;
  std::string_view rest = openmetrics;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (!line.starts_with("# ")) {
      out += fmt::format("{}\n", line);
      continue;
    }
    const auto [what, family, about] = description_of(line);
    if (what == "TYPE") {
      name = fmt::format("{}{}", family, about == "counter" ? "_total" : about == "info" ? "_info" : "");
      out += fmt::format("# TYPE {} {}\n", name, about == "info" ? "gauge" : about);
    } else if (what == "HELP") {
      out += fmt::format("# HELP {} {}\n", name, without_escaped_quotes(about));
    }
  }
  return out;
}

// RFC 9110, 12.5.1. A weight of 0 is a refusal; other weights do not matter, as both texts say the same.
bool asks_for_openmetrics(std::string_view accept) {
  while (!accept.empty()) {
    const std::string range = take_piece(accept, ',');
    std::string_view rest = range;
    if (take_piece(rest, ';') != "application/openmetrics-text") continue;
    bool is_refused = false;
    while (!rest.empty()) {
      const std::string parameter = take_piece(rest, ';');
      if (parameter.starts_with("q=")) is_refused = parameter.find_first_of("123456789") == parameter.npos;
    }
    if (!is_refused) return true;
  }
  return false;
}

}  // namespace spw::tool
