// The lower part of the screen: processes, allocations, latencies or what happens to blocks. And the list of runs.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "top/graph.h"
#include "top/view.h"

namespace spw::tool::top {

namespace {

// A line of headings, the one by which lines are ordered stressed.
struct Column {
  const char* name;
  int width;
  bool is_sorted;
};

// Columns are set to the right, the last one is the rest of the line.
void draw_headings(Canvas& canvas, int line, std::initializer_list<Column> columns) {
  int at = 0;
  for (const Column& column : columns) {
    const Style style = column.is_sorted ? Style::kStrong : Style::kLabel;
    if (column.width == 0)
      canvas.put(at + 1, line, column.name, style);
    else
      canvas.put_right(at += column.width, line, column.name, style);
  }
}

void draw_tabs(Canvas& canvas, const View& view, Place place) {
  const bool is_utf8 = canvas.charset() == Charset::kUtf8;
  for (int i = 0; i < place.columns; ++i) canvas.put(i, place.line, is_utf8 ? "─" : "-", Style::kDim);
  constexpr const char* kNames[] = {" t processes ", " a allocations ", " l latencies ", " r trace "};
  constexpr const char* kBrief[] = {" t ", " a ", " l ", " r "};
  int at = 1;
  for (unsigned i = 0; i < 4; ++i) {
    const bool is_shown = static_cast<unsigned>(view.pane) == i;
    const char* const name = place.columns >= 56 || is_shown ? kNames[i] : kBrief[i];
    at = canvas.put(at, place.line, name, is_shown ? Style::kStrong : Style::kDim) + 1;
  }
  const auto samples = static_cast<size_t>(graph_columns(canvas.columns()));
  if (place.columns >= 90 && samples > 0 && !view.watched->history.is_empty())
    canvas.put_right(place.columns - 1, place.line,
                     fmt::format(" graphs: the last {} ", span_text(view.watched->history.span_s(samples))),
                     Style::kDim);
}

std::string misses_text(const Process& process) {
  return process.misses_s ? count_text(*process.misses_s) : "-";
}
std::string share_text(const Process& process) {
  const auto share = process.cap_share();
  return share ? fmt::format("{:.1f}", 100 * *share) : "-";
}

void draw_tree(Canvas& canvas, View& view, Place place) {
  const Run* run = view.run();
  const bool is_wide = place.columns >= 56;
  const ProcessSort sort = view.process_sort;
  const Column number{"PID", 9, sort == ProcessSort::kNumber},
      resident{"RESIDENT", 11, sort == ProcessSort::kResident},
      share{"CAP %", 7, sort == ProcessSort::kShare}, misses{"MISS/s", 8, sort == ProcessSort::kMisses},
      program{"PROGRAM", 0, false};
  if (is_wide)
    draw_headings(canvas, place.line, {number, resident, share, misses, program});
  else
    draw_headings(canvas, place.line, {number, share, misses, program});
  if (!run) {
    canvas.put(1, place.line + 1, "its processes are not to be seen", Style::kDim);
    return;
  }
  const std::vector<TreeRow> rows = tree_rows(run->processes, sort, canvas.charset() == Charset::kUtf8);
  const auto selected = std::find_if(rows.begin(), rows.end(), [&](const TreeRow& row) {
    return run->processes[row.process].id == view.selected;
  });
  const int at = selected == rows.end() ? 0 : static_cast<int>(selected - rows.begin());
  if (selected == rows.end() && !rows.empty()) view.selected = run->processes[rows.front().process].id;
  view.scroll = scrolled(view.scroll, at, static_cast<int>(rows.size()), place.lines - 1);
  for (int i = 0; i < place.lines - 1 && view.scroll + i < static_cast<int>(rows.size()); ++i) {
    const TreeRow& row = rows[static_cast<size_t>(view.scroll + i)];
    const Process& process = run->processes[row.process];
    const int line = place.line + 1 + i;
    int end = number.width;
    canvas.put_right(end, line, std::to_string(process.id));
    if (is_wide)
      canvas.put_right(end += resident.width, line, bytes_text(static_cast<double>(process.resident_bytes)));
    canvas.put_right(end += share.width, line, share_text(process));
    canvas.put_right(end += misses.width, line, misses_text(process));
    const int name = canvas.put(end + 1, line, row.branch, Style::kDim);
    const bool is_watched = process.id == view.watched->facts.process;
    canvas.put(name, line, process.program,
               is_watched         ? Style::kStrong
               : process.has_page ? Style::kPlain
                                  : Style::kDim);
    if (process.id == view.selected) canvas.paint_line(line, Style::kSelected);
  }
}

void draw_allocations(Canvas& canvas, View& view, Place place) {
  const bool by_misses = view.area_sort == AreaSort::kMisses;
  std::vector<const AreaUse*> uses;
  for (const AreaUse& use : view.watched->areas) uses.push_back(&use);
  if (!by_misses)
    std::sort(uses.begin(), uses.end(), [](const AreaUse* a, const AreaUse* b) {
      return std::tuple(~a->bytes, a->begin) < std::tuple(~b->bytes, b->begin);
    });
  const bool is_wide = place.columns >= 70;
  const Column share{"MISSES", 8, by_misses}, size{"SIZE", 11, !by_misses}, begin{"AT", 16, false},
      maker{"ALLOCATED IN, OR FILE", 0, false};
  if (is_wide)
    draw_headings(canvas, place.line, {share, size, begin, maker});
  else
    draw_headings(canvas, place.line, {share, size, maker});
  if (uses.empty()) canvas.put(1, place.line + 1, "no allocation of 1 MiB or more, and no miss", Style::kDim);
  view.scroll = scrolled(view.scroll, -1, static_cast<int>(uses.size()), place.lines - 1);
  for (int i = 0; i < place.lines - 1 && view.scroll + i < static_cast<int>(uses.size()); ++i) {
    const AreaUse& use = *uses[static_cast<size_t>(view.scroll + i)];
    const int line = place.line + 1 + i;
    int end = share.width;
    canvas.put_right(end, line, fmt::format("{:.0f} %", 100 * use.share));
    canvas.put_right(end += size.width, line,
                     use.bytes > 0 ? bytes_text(static_cast<double>(use.bytes)) : "");
    if (is_wide)
      canvas.put_right(end += begin.width, line, use.bytes > 0 ? fmt::format("{:#x}", use.begin) : "");
    canvas.put(end + 1, line, use.maker.empty() ? "not known" : use.maker,
               use.misses > 0 ? Style::kPlain : Style::kDim);
  }
}

// Classes of one doubling of time together: so many doublings, from the first to the last that has any.
struct Octaves {
  std::vector<double> now, all;  // shares
  uint64_t first_end_ns = 0;     // the time below which the first ones are
};

Octaves octaves_of(const telemetry::Latencies& now, const telemetry::Latencies& all, int lines) {
  constexpr size_t kPerOctave = size_t{1} << telemetry::kPerOctaveShift;
  size_t first = telemetry::kClasses, last = 0;
  for (size_t i = 0; i < telemetry::kClasses; ++i)
    if (all.counts[i] > 0) first = std::min(first, i), last = i;
  Octaves octaves;
  if (first == telemetry::kClasses || lines <= 0) return octaves;
  const auto octave = [](size_t index) { return (index + kPerOctave - 1) / kPerOctave; };
  size_t begin = octave(first);
  const size_t end = octave(last);
  if (end - begin >= static_cast<size_t>(lines))
    begin = end - static_cast<size_t>(lines) + 1;  // the rest in the first
  octaves.now.resize(end - begin + 1);
  octaves.all.resize(end - begin + 1);
  octaves.first_end_ns = uint64_t{1} << (telemetry::kOctavesBegin + begin);
  const double now_count = static_cast<double>(std::max<uint64_t>(now.count(), 1));
  const double all_count = static_cast<double>(std::max<uint64_t>(all.count(), 1));
  for (size_t i = 0; i < telemetry::kClasses; ++i) {
    const size_t place = std::max(octave(i), begin) - begin;
    if (place >= octaves.all.size()) break;
    octaves.now[place] += static_cast<double>(now.counts[i]) / now_count;
    octaves.all[place] += static_cast<double>(all.counts[i]) / all_count;
  }
  return octaves;
}

void draw_latencies(Canvas& canvas, View& view, Place place) {
  const telemetry::LatencySummary all = summary_of(view.watched->latencies_all);
  canvas.put(0, place.line,
             all.count == 0
                 ? std::string("no miss since the look began")
                 : fmt::format("p50 {}, p99 {}, p99.9 {}, worst {}; {} misses since the look began",
                               time_text(all.p50_ns), time_text(all.p99_ns), time_text(all.p999_ns),
                               time_text(all.worst_ns), count_text(static_cast<double>(all.count))),
             Style::kLabel);
  const Octaves octaves =
      octaves_of(view.watched->latencies_now, view.watched->latencies_all, place.lines - 2);
  if (octaves.all.empty()) return;
  draw_headings(canvas, place.line + 1, {{"BELOW", 10, false}, {"NOW", 9, true}, {"ALL", 9, false}});
  const int width = place.columns - 30;
  const double top = std::max(*std::max_element(octaves.now.begin(), octaves.now.end()), 1e-9);
  for (size_t i = 0; i < octaves.all.size(); ++i) {
    const int line = place.line + 2 + static_cast<int>(i);
    canvas.put_right(10, line, time_text(octaves.first_end_ns << i));
    canvas.put_right(19, line, percent_text(octaves.now[i]));
    canvas.put_right(28, line, percent_text(octaves.all[i]), Style::kDim);
    if (width > 0) canvas.put(29, line, bar(octaves.now[i] / top, width, canvas.charset()), Style::kGraph);
  }
}

void draw_trace(Canvas& canvas, View& view, Place place) {
  const auto& trace = view.watched->trace;
  const int count = static_cast<int>(trace.size());
  if (count == 0) canvas.put(1, place.line, "nothing has happened to a block yet", Style::kDim);
  // Scrolled upwards from the newest.
  view.scroll = std::clamp(view.scroll, -std::max(0, count - place.lines), 0);
  const int first = std::max(0, count - place.lines + view.scroll);
  for (int i = 0; i < place.lines && first + i < count; ++i)
    canvas.put(0, place.line + i, trace[static_cast<size_t>(first + i)]);
}

}  // namespace

void draw_pane(Canvas& canvas, View& view, Place place) {
  draw_tabs(canvas, view, place);
  const Place rest{place.column, place.line + 1, place.columns, place.lines - 1};
  switch (view.pane) {
    case Pane::kTree:
      return draw_tree(canvas, view, rest);
    case Pane::kAllocations:
      return draw_allocations(canvas, view, rest);
    case Pane::kLatencies:
      return draw_latencies(canvas, view, rest);
    case Pane::kTrace:
      return draw_trace(canvas, view, rest);
  }
}

void draw_runs(Canvas& canvas, View& view, Place place) {
  const bool is_wide = place.columns >= 70;
  const Column number{"PID", 9, false}, processes{"PROCESSES", 11, false}, held{"MEMORY", 11, false},
      cap{"CAP", 11, false}, misses{"MISS/s", 8, false}, program{"PROGRAM", 0, false};
  if (is_wide)
    draw_headings(canvas, place.line, {number, processes, held, cap, misses, program});
  else
    draw_headings(canvas, place.line, {number, held, misses, program});
  if (view.runs.empty()) canvas.put(1, place.line + 1, "no program runs under Spillway now", Style::kDim);
  const std::vector<uint64_t> all = selectable(view);
  auto selected = std::find(all.begin(), all.end(), view.selected);
  if (selected == all.end()) selected = all.begin();
  if (!all.empty()) view.selected = *selected;
  view.scroll = scrolled(view.scroll, static_cast<int>(selected - all.begin()), static_cast<int>(all.size()),
                         place.lines - 1);
  for (int i = 0; i < place.lines - 1 && view.scroll + i < static_cast<int>(view.runs.size()); ++i) {
    const Run& run = view.runs[static_cast<size_t>(view.scroll + i)];
    const Process* first = run.first();
    if (!first) continue;
    const int line = place.line + 1 + i;
    int end = number.width;
    canvas.put_right(end, line, std::to_string(first->id));
    if (is_wide) canvas.put_right(end += processes.width, line, std::to_string(run.processes.size()));
    canvas.put_right(end += held.width, line, bytes_text(static_cast<double>(run.held_bytes())));
    if (is_wide)
      canvas.put_right(end += cap.width, line,
                       run.cap_bytes > 0 ? bytes_text(static_cast<double>(run.cap_bytes)) : "-");
    canvas.put_right(end += misses.width, line, count_text(run.misses_s()));
    canvas.put(end + 1, line, first->program);
    if (first->id == view.selected) canvas.paint_line(line, Style::kSelected);
  }
}

}  // namespace spw::tool::top
