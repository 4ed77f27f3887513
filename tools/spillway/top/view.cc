#include "top/view.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

namespace spw::tool::top {

namespace {

// Room that has to be there for a pane below the numbers, and for graphs of so many lines.
constexpr int kPaneLinesMin = 6, kLegendLinesMin = 13;

std::string keys_text(const View& view, int columns) {
  std::string sort;
  if (view.pane == Pane::kTree) {
    constexpr const char* kNames[] = {"misses", "resident", "share", "number"};
    sort = kNames[static_cast<size_t>(view.process_sort)];
  } else if (view.pane == Pane::kAllocations) {
    sort = view.area_sort == AreaSort::kMisses ? "misses" : "size";
  }
  if (!sort.empty()) sort = "  s sort: " + sort;
  if (!view.watched) return "? help  q quit  Enter look at one";
  const std::string all =
      "F1 ? help  q quit  p pause  +/- interval  t tree  a allocations  l latencies  r trace" + sort;
  const std::string few = "? help  q quit  p pause  t a l r panes";
  if (columns_of(all) <= columns) return all;
  return columns_of(few + sort) <= columns ? few + sort : few;
}

const Process* process_of(const View& view) {
  const Run* run = view.run();
  for (size_t i = 0; run && i < run->processes.size(); ++i)
    if (run->processes[i].id == view.watched->facts.process) return &run->processes[i];
  return nullptr;
}

void draw_title(Canvas& canvas, const View& view) {
  std::string left, right = fmt::format("every {:g} s ", view.interval_s);
  if (view.is_paused) right = "PAUSED  " + right;
  if (view.watched) {
    const PageFacts& facts = view.watched->facts;
    const Process* process = process_of(view);
    const std::string name = process ? process->program : facts.program.substr(facts.program.rfind('/') + 1);
    left = fmt::format(" {} ({})  {}, {} blocks", name, facts.process, facts.engine,
                       bytes_text(static_cast<double>(facts.block_bytes)));
    if (canvas.columns() >= 60) right = span_text(view.watched->running_s) + "  " + right;
  } else {
    left = " spillway top: choose a run";
  }
  const int end = canvas.columns();
  const int room = std::max(0, end - columns_of(right) - 1);
  canvas.put(0, 0, left, Style::kTitle, room);
  canvas.put_right(end, 0, right, Style::kTitle);
  canvas.paint_line(0, Style::kTitle);
}

// Those of the lower part's lines that graphs may have, each as many as the others.
int lines_of_graphs(int lines) {
  for (const int each : {3, 2})
    if (lines - each * kNumberRows >= 2 * kPaneLinesMin) return each;
  return 1;
}

void draw_watched(Canvas& canvas, View& view) {
  const bool has_legend = canvas.lines() >= kLegendLinesMin;
  draw_memory(canvas, view, 1, has_legend);
  const int top = has_legend ? 3 : 2, end = canvas.lines() - 1;
  const Place all{0, top, canvas.columns(), end - top};
  if (all.lines - kNumberRows < kPaneLinesMin) {
    if (view.pane_is_open)
      draw_pane(canvas, view, all);
    else
      draw_numbers(canvas, view, all, 1);
    return;
  }
  const int graph_lines = lines_of_graphs(all.lines), used = graph_lines * kNumberRows;
  draw_numbers(canvas, view, {0, top, all.columns, used}, graph_lines);
  draw_pane(canvas, view, {0, top + used, all.columns, all.lines - used});
}

// The selected one, so many places further on.
void move_selection(View& view, int by) {
  const std::vector<uint64_t> all = selectable(view);
  if (all.empty()) {
    view.scroll += by;  // brought into bounds when it is drawn
    return;
  }
  const auto found = std::find(all.begin(), all.end(), view.selected);
  const int at = found == all.end() ? 0 : static_cast<int>(found - all.begin());
  view.selected = all[static_cast<size_t>(std::clamp(at + by, 0, static_cast<int>(all.size()) - 1))];
}

void change_sort(View& view) {
  if (view.watched && view.pane == Pane::kAllocations)
    view.area_sort = view.area_sort == AreaSort::kMisses ? AreaSort::kSize : AreaSort::kMisses;
  else if (view.watched && view.pane == Pane::kTree)
    view.process_sort = static_cast<ProcessSort>((static_cast<unsigned>(view.process_sort) + 1) % 4);
}

void open_pane(View& view, Pane pane) {
  // A second time where it stands instead of the numbers: back to these.
  view.pane_is_open = view.pane != pane || !view.pane_is_open;
  if (view.pane != pane) view.scroll = 0;
  view.pane = pane;
}

Action change_interval(View& view, int by) {
  constexpr double kSteps[] = {0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60};
  const auto* const end = std::end(kSteps);
  const auto* at = std::lower_bound(std::begin(kSteps), end, view.interval_s - 1e-9);
  if (by > 0 && at != end && *at <= view.interval_s + 1e-9) ++at;
  if (by < 0 && at != std::begin(kSteps)) --at;
  if (at == end) return Action::kNone;
  view.interval_s = *at;
  return Action::kInterval;
}

Action press_in_help(View& view, uint32_t key) {
  if (key == kKeyUp || key == kKeyPageUp)
    view.scroll -= key == kKeyUp ? 1 : 8;
  else if (key == kKeyDown || key == kKeyPageDown)
    view.scroll += key == kKeyDown ? 1 : 8;
  else if (key == 'q' || key == 'Q')
    return Action::kQuit;
  else if (key != kKeyRedraw)
    view.shows_help = false, view.scroll = 0;
  return Action::kNone;
}

Action press_to_move(View& view, uint32_t key) {
  constexpr int kPage = 10, kFar = 1 << 20;
  switch (key) {
    case kKeyUp:
    case 'k':
      move_selection(view, -1);
      break;
    case kKeyDown:
    case 'j':
      move_selection(view, 1);
      break;
    case kKeyPageUp:
      move_selection(view, -kPage);
      break;
    case kKeyPageDown:
      move_selection(view, kPage);
      break;
    case kKeyHome:
      move_selection(view, -kFar);
      break;
    case kKeyEnd:
      move_selection(view, kFar);
      break;
    default:
      break;
  }
  return Action::kNone;
}

}  // namespace

std::vector<uint64_t> selectable(const View& view) {
  std::vector<uint64_t> all;
  if (!view.watched) {
    for (const Run& run : view.runs)
      if (const Process* first = run.first()) all.push_back(first->id);
    return all;
  }
  if (view.pane != Pane::kTree) return all;
  if (const Run* run = view.run())
    for (const TreeRow& row : tree_rows(run->processes, view.process_sort, true))
      all.push_back(run->processes[row.process].id);
  return all;
}

int scrolled(int scroll, int selected, int count, int lines) {
  if (lines <= 0) return 0;
  if (selected >= 0) scroll = std::clamp(scroll, selected - lines + 1, selected);
  return std::clamp(scroll, 0, std::max(0, count - lines));
}

Action press(View& view, uint32_t key) {
  view.message.clear();
  if (key == kKeyRedraw) return Action::kRedraw;
  if (view.shows_help) return press_in_help(view, key);
  switch (key) {
    case 'q':
    case 'Q':
      return Action::kQuit;
    case kKeyF1:
    case '?':
    case 'h':
      view.shows_help = true;
      view.scroll = 0;
      return Action::kNone;
    case 'p':
    case ' ':
      view.is_paused = !view.is_paused;
      return Action::kNone;
    case '+':
    case '=':
      return change_interval(view, 1);
    case '-':
    case '_':
      return change_interval(view, -1);
    case 's':
      change_sort(view);
      return Action::kNone;
    case kKeyEnter:
      return !view.watched || view.pane == Pane::kTree ? Action::kWatch : Action::kNone;
    case kKeyBack:
      return view.watched ? Action::kBack : Action::kNone;
    default:
      break;
  }
  if (view.watched) switch (key) {
      case 't':
        open_pane(view, Pane::kTree);
        return Action::kNone;
      case 'a':
        open_pane(view, Pane::kAllocations);
        return Action::kNone;
      case 'l':
        open_pane(view, Pane::kLatencies);
        return Action::kNone;
      case 'r':
        open_pane(view, Pane::kTrace);
        return Action::kNone;
      default:
        break;
    }
  return press_to_move(view, key);
}

void draw(Canvas& canvas, View& view) {
  if (canvas.columns() < View::kColumnsMin || canvas.lines() < View::kLinesMin) {
    canvas.put(0, 0, "too small");
    return;
  }
  draw_title(canvas, view);
  const int last = canvas.lines() - 1;
  if (view.shows_help)
    draw_help(canvas, view, {0, 1, canvas.columns(), last - 1});
  else if (view.watched)
    draw_watched(canvas, view);
  else
    draw_runs(canvas, view, {0, 1, canvas.columns(), last - 1});
  if (view.message.empty())
    canvas.put(0, last,
               view.shows_help ? "any key: back  up, down: scroll" : keys_text(view, canvas.columns()),
               Style::kDim);
  else
    canvas.put(0, last, view.message, Style::kWarning);
}

}  // namespace spw::tool::top
