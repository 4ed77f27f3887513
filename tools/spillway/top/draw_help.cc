// The keys, and what each number says.
#include <algorithm>
#include <iterator>

#include "top/view.h"

namespace spw::tool::top {

namespace {

struct Line {
  const char *key, *text;  // "": a heading, or nothing
};

constexpr Line kHelp[] = {
    {"", "Keys"},
    {"q", "quit"},
    {"p, space", "pause: the screen stands, the program goes on"},
    {"+ -", "look less often, or more often"},
    {"t", "processes of the run: who started whom, and who holds how much of the cap"},
    {"a", "allocations that most misses are in, by the functions that made them"},
    {"l", "latencies: how long misses took"},
    {"r", "trace: what happens to blocks, the newest last"},
    {"s", "sort by something else"},
    {"up, down", "select, or scroll; also Page Up, Page Down, Home, End, j, k"},
    {"Enter", "look at the selected process"},
    {"Esc", "back to the list of runs"},
    {"^L", "draw the screen anew"},
    {"", ""},
    {"", "What is shown"},
    {"memory", "what this process and others of its run hold, of the cap that all share"},
    {"hit ratio", "of uses of the shared cache; near 100 %: memory is enough"},
    {"misses", "blocks that had to be brought in, a second"},
    {"miss took", "half of them at most the first time, 99 of 100 the second; graph: the second"},
    {"read, written", "by this process from and to its store; device: by all who use it"},
    {"device", "of the time, how much the disk had something to do; the limit where it nears 100 %"},
    {"waiting", "threads that wait for reads, on average: what more memory would save"},
    {"dirty", "memory that has to be written before it can be evicted"},
    {"CAP %", "of the cap, what a process holds"},
};

}  // namespace

void draw_help(Canvas& canvas, View& view, Place place) {
  constexpr int kKeyColumns = 15;
  const int count = static_cast<int>(std::size(kHelp));
  view.scroll = scrolled(view.scroll, -1, count, place.lines);
  for (int i = 0; i < place.lines && view.scroll + i < count; ++i) {
    const Line& line = kHelp[view.scroll + i];
    const bool is_heading = *line.key == '\0';
    canvas.put(1, place.line + i, line.key, Style::kLabel, kKeyColumns - 1);
    canvas.put(is_heading ? 1 : kKeyColumns + 1, place.line + i, line.text,
               is_heading ? Style::kStrong : Style::kPlain);
  }
}

}  // namespace spw::tool::top
