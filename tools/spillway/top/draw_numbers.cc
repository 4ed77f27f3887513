// The upper part of the screen: memory against the cap, and each number with its history.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "top/graph.h"
#include "top/view.h"

namespace spw::tool::top {

namespace {

using telemetry::Counter;

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
constexpr int kNameColumns = 11, kGraphColumnsMin = 8;

// How many columns a value's text has, of a screen of so many.
int value_columns(int columns) { return columns >= 100 ? 48 : columns >= 60 ? 24 : 18; }

struct Row {
  const char* name;
  std::string brief, full;  // for narrow and for wide screens
  std::vector<double> values;
  double top = 0;  // 0: by the values
  Style style = Style::kPlain;
  std::string (*top_text)(double) = nullptr;
  bool is_bytes = false;
};

std::string bytes_s_text(double bytes) { return bytes_text(bytes) + "/s"; }
std::string rate_text(double count) { return count_text(count) + "/s"; }
std::string ns_text(double ns) { return time_text(static_cast<uint64_t>(ns)); }

Row hit_row(const History& history, const Numbers& now) {
  const std::string ratio = now.hit_ratio ? percent_text(*now.hit_ratio) : "-";
  const Style style = !now.hit_ratio || *now.hit_ratio > 0.95 ? Style::kPlain : Style::kWarning;
  return {"hit ratio",
          ratio,
          fmt::format("{} of {} uses/s", ratio, count_text(now.uses_s)),
          history.values([](const Numbers& each) { return each.hit_ratio.value_or(kNoValue); }),
          1,
          style};
}

Row miss_row(const History& history, const Numbers& now) {
  const std::string misses = rate_text(now.rate(Counter::shared_misses));
  return {
      "misses",
      misses,
      fmt::format("{}, read {}, ahead {}, zeros {}", misses,
                  count_text(now.rate(Counter::fills) + now.rate(Counter::unit_fills)),
                  count_text(now.rate(Counter::readahead_fills)), count_text(now.rate(Counter::zero_fills))),
      history.values([](const Numbers& each) { return each.rate(Counter::shared_misses); }),
      0,
      Style::kPlain,
      rate_text};
}

Row took_row(const History& history, const Numbers& now) {
  Row row{"miss took",
          "-",
          "-",
          history.values([](const Numbers& each) {
            return each.took.count == 0 ? kNoValue : static_cast<double>(each.took.p99_ns);
          }),
          0,
          Style::kPlain,
          ns_text};
  if (now.took.count == 0) return row;
  row.brief = fmt::format("{}, {}", time_text(now.took.p50_ns), time_text(now.took.p99_ns));
  row.full = fmt::format("p50 {}, p99 {}", time_text(now.took.p50_ns), time_text(now.took.p99_ns));
  return row;
}

// Of what the whole device does, for all who use it.
std::string of_device(double ours, double device) {
  return fmt::format("{}, device {}", bytes_s_text(ours), bytes_s_text(device));
}

Row read_row(const History& history, const Numbers& now) {
  const double ours = now.rate(Counter::store_read_bytes);
  std::string full = bytes_s_text(ours);
  if (now.compressed_bytes > 0)
    full += ", compressed " + rate_text(now.rate(Counter::compressed_hits));
  else if (now.device)
    full = of_device(ours, now.device->read_bytes_s);
  return {"read",
          bytes_s_text(ours),
          full,
          history.values([](const Numbers& each) { return each.rate(Counter::store_read_bytes); }),
          0,
          Style::kPlain,
          bytes_s_text,
          true};
}

Row written_row(const History& history, const Numbers& now) {
  const double ours = now.rate(Counter::store_write_bytes);
  return {"written",
          bytes_s_text(ours),
          now.device ? of_device(ours, now.device->write_bytes_s) : bytes_s_text(ours),
          history.values([](const Numbers& each) { return each.rate(Counter::store_write_bytes); }),
          0,
          Style::kPlain,
          bytes_s_text,
          true};
}

Row device_row(const Watched& watched, const Numbers& now) {
  Row row{"device", "-", "-", watched.history.values([](const Numbers& each) {
            return each.device ? each.device->busy : kNoValue;
          }),
          1};
  if (!now.device) return row;
  row.brief = percent_text(now.device->busy) + " busy";
  row.full = fmt::format("{} {}, {:.1f} in flight, {} req/s", watched.device_name, row.brief,
                         now.device->in_flight, count_text(now.device->requests_s));
  if (now.device->busy > 0.9) row.style = Style::kWarning;
  return row;
}

Row waiting_row(const History& history, const Numbers& now) {
  Row row{"waiting",
          fmt::format("{:.2f} threads", now.waiting),
          fmt::format("{:.2f} threads for reads, {} shared waits", now.waiting,
                      rate_text(now.rate(Counter::shared_waits))),
          history.values([](const Numbers& each) { return each.waiting; }),
          0,
          Style::kPlain,
          count_text};
  if (now.waiting >= 0.5) row.style = Style::kWarning;
  return row;
}

Row dirty_row(const History& history, const Numbers& now) {
  const std::string dirty = bytes_text(static_cast<double>(now.dirty_bytes));
  return {"dirty",
          dirty,
          fmt::format("{}, evicted {}, written {}", dirty, rate_text(now.rate(Counter::evictions)),
                      rate_text(now.rate(Counter::writebacks))),
          history.values([](const Numbers& each) { return static_cast<double>(each.dirty_bytes); }),
          0,
          Style::kPlain,
          [](double bytes) { return bytes_text(bytes); },
          true};
}

void draw_row(Canvas& canvas, const Row& row, Place place) {
  const int value_width = value_columns(place.columns), at = kNameColumns + value_width + 1;
  const int width = graph_columns(place.columns);
  canvas.put(0, place.line, row.name, Style::kLabel, kNameColumns - 1);
  canvas.put(kNameColumns, place.line, place.columns >= 100 ? row.full : row.brief, row.style,
             width > 0 ? value_width : place.columns);
  if (width == 0) return;
  const double top = row.top > 0    ? row.top
                     : row.is_bytes ? round_top_bytes(most(row.values, width))
                                    : round_top(most(row.values, width));
  const auto lines = graph(row.values, width, place.lines, top, canvas.charset());
  for (int i = 0; i < place.lines; ++i)
    canvas.put(at, place.line + i, lines[static_cast<size_t>(i)], Style::kGraph);
  if (place.lines > 1 && row.top_text && most(row.values, width) > 0)
    canvas.put_right(kNameColumns + value_width, place.line + 1, "top " + row.top_text(top), Style::kDim);
}

// The parts of the bar: this process's dirty and clean memory, and what the others of its run hold.
struct Parts {
  double cap = 0, dirty = 0, mine = 0, others = 0;
};

Parts memory_parts(const View& view, const Numbers& now) {
  Parts parts;
  parts.cap = static_cast<double>(view.watched->facts.memory_cap_bytes);
  parts.mine = static_cast<double>(now.resident_bytes);
  const Run* run = view.run();
  for (size_t i = 0; run && i < run->processes.size(); ++i) {
    const Process& each = run->processes[i];
    const auto held = static_cast<double>(each.held_bytes);
    if (each.id == view.watched->facts.process)
      parts.mine = std::max(parts.mine, held);
    else
      parts.others += held;
  }
  if (run && run->cap_bytes > 0) parts.cap = static_cast<double>(run->cap_bytes);
  parts.dirty = std::min(static_cast<double>(now.dirty_bytes), parts.mine);
  return parts;
}

}  // namespace

int graph_columns(int columns) {
  const int left = columns - kNameColumns - value_columns(columns) - 1;
  return left >= kGraphColumnsMin ? left : 0;
}

void draw_numbers(Canvas& canvas, const View& view, Place place, int graph_lines) {
  if (view.watched->history.is_empty()) {
    canvas.put(kNameColumns, place.line, "looking ...", Style::kDim);
    return;
  }
  const History& history = view.watched->history;
  const Numbers& now = history.newest();
  const Row rows[kNumberRows] = {hit_row(history, now),     miss_row(history, now),
                                 took_row(history, now),    read_row(history, now),
                                 written_row(history, now), device_row(*view.watched, now),
                                 waiting_row(history, now), dirty_row(history, now)};
  for (int i = 0; i < kNumberRows && (i + 1) * graph_lines <= place.lines; ++i)
    draw_row(canvas, rows[i], {0, place.line + i * graph_lines, place.columns, graph_lines});
}

void draw_memory(Canvas& canvas, const View& view, int line, bool has_legend) {
  if (view.watched->history.is_empty()) return;
  const Parts parts = memory_parts(view, view.watched->history.newest());
  const double cap = std::max(parts.cap, 1.0), used = parts.mine + parts.others;
  const std::string of_cap = canvas.columns() >= 60 ? " of " + bytes_text(parts.cap) : "";
  const std::string text = fmt::format(" {}{} {:3.0f} %", bytes_text(used), of_cap, 100 * used / cap);
  canvas.put(0, line, "memory", Style::kLabel);
  const int width = canvas.columns() - kNameColumns - columns_of(text) - 2;
  canvas.put_right(canvas.columns(), line, text, used > cap * 1.1 ? Style::kBad : Style::kStrong);
  if (width >= 4) {
    const double shares[] = {parts.dirty / cap, (parts.mine - parts.dirty) / cap, parts.others / cap};
    const bool is_utf8 = canvas.charset() == Charset::kUtf8;
    const char* const letters[] = {is_utf8 ? "▓" : "#", is_utf8 ? "█" : "|", is_utf8 ? "░" : ":"};
    const Style styles[] = {Style::kWarning, Style::kGood, Style::kOther};
    const std::vector<int> columns = divide(shares, width);
    int at = canvas.put(kNameColumns, line, "[");
    for (size_t part = 0; part < columns.size(); ++part)
      for (int i = 0; i < columns[part]; ++i) at = canvas.put(at, line, letters[part], styles[part]);
    canvas.put(kNameColumns + 1 + width, line, "]");
  }
  if (!has_legend) return;
  int at = canvas.put(kNameColumns, line + 1, "dirty " + bytes_text(parts.dirty), Style::kWarning);
  at = canvas.put(at + 2, line + 1, "clean " + bytes_text(parts.mine - parts.dirty), Style::kGood);
  at = canvas.put(at + 2, line + 1, "others of the run " + bytes_text(parts.others), Style::kOther);
  if (const Numbers& now = view.watched->history.newest(); now.compressed_bytes > 0)
    at = canvas.put(at + 2, line + 1,
                    fmt::format("compressed {} (1/{:.1f})",
                                bytes_text(static_cast<double>(now.compressed_bytes)), now.compressed_ratio),
                    Style::kOther);
  canvas.put(at + 2, line + 1, "store " + view.watched->facts.store, Style::kDim);
}

}  // namespace spw::tool::top
