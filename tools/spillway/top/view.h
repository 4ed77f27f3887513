// What the screen of `spillway top` shows, and how keys change it; drawing it on a canvas.
//
// Everything here is pure: no terminal, no process is touched, so that any size and any content can be tested.
// Invariant after draw(): scroll and selection are within what there is.
// Limits: kTraceLinesMax. A canvas below kColumnsMin x kLinesMin shows one line that says so.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "top/areas.h"
#include "top/canvas.h"
#include "top/numbers.h"
#include "top/processes.h"

namespace spw::tool::top {

// Keys beyond letters, as numbers that are no letters.
enum Key : uint32_t {
  kKeyUp = 0x110000,
  kKeyDown,
  kKeyPageUp,
  kKeyPageDown,
  kKeyHome,
  kKeyEnd,
  kKeyEnter,
  kKeyBack,
  kKeyF1,
  kKeyRedraw
};

enum class Pane : uint8_t { kTree, kAllocations, kLatencies, kTrace };
enum class AreaSort : uint8_t { kMisses, kSize };

// What is known of the process that is watched.
struct Watched {
  PageFacts facts;
  std::string device_name;
  History history;
  std::vector<AreaUse> areas;
  telemetry::Latencies latencies_now, latencies_all;  // of the last interval; since the watching began
  std::deque<std::string> trace;                      // the newest last
  double running_s = 0;
};

struct View {
  static constexpr int kColumnsMin = 24, kLinesMin = 5;
  static constexpr size_t kTraceLinesMax = 5000;

  Charset charset = Charset::kUtf8;
  std::optional<Watched> watched;  // nothing: the list of runs is shown
  std::vector<Run> runs;
  Pane pane = Pane::kTree;
  bool pane_is_open = false;  // where there is no room for both: instead of the numbers
  bool shows_help = false;
  bool is_paused = false;
  double interval_s = 1;
  ProcessSort process_sort = ProcessSort::kMisses;
  AreaSort area_sort = AreaSort::kMisses;
  uint64_t selected = 0;  // a process's number: in the tree, or the first of a run
  int scroll = 0;         // lines that are above the pane's first
  std::string message;    // in place of the keys

  const Run* run() const { return watched ? run_of(runs, watched->facts.process) : nullptr; }
};

enum class Action : uint8_t { kNone, kQuit, kWatch, kBack, kInterval, kRedraw };
// kWatch: look at `view.selected`. kBack: at the list of runs.
Action press(View& view, uint32_t key);

void draw(Canvas& canvas, View& view);

// --- parts of draw() ---
struct Place {
  int column, line, columns, lines;
};
void draw_numbers(Canvas& canvas, const View& view, Place place, int graph_lines);
void draw_memory(Canvas& canvas, const View& view, int line, bool has_legend);
void draw_pane(Canvas& canvas, View& view, Place place);
void draw_runs(Canvas& canvas, View& view, Place place);
void draw_help(Canvas& canvas, View& view, Place place);
// The numbers of one line each, and how many samples their graphs show on so many columns.
inline constexpr int kNumberRows = 8;
int graph_columns(int columns);

// Of what can be selected, in the order in which it is shown; for keys and for drawing alike.
std::vector<uint64_t> selectable(const View& view);
// The first line to show of `count`, so that `selected` is among `lines`, and `scroll` changes as little as possible.
int scrolled(int scroll, int selected, int count, int lines);

}  // namespace spw::tool::top
