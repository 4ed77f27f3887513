#include "top/view.h"

#include <gtest/gtest.h>
#include <locale.h>

#include <algorithm>

namespace spw::tool::top {
namespace {

using telemetry::Counter;

constexpr uint64_t kMib = 1 << 20;

Process process(uint64_t id, uint64_t parent, const std::string& program, double misses_s) {
  Process made;
  made.id = made.started = id;
  made.parent = parent;
  made.program = program;
  made.misses_s = misses_s;
  made.resident_bytes = 20 * kMib;
  made.held_bytes = 8 * kMib;
  made.share = process::TreeShare{9, 32 * kMib, 0, true, 0, 8 * kMib, false};
  made.has_page = true;
  return made;
}

Numbers sample(double second) {
  Numbers numbers;
  numbers.at_s = second;
  numbers.seconds = 1;
  numbers.rates[static_cast<size_t>(Counter::shared_misses)] = 12'300;
  numbers.rates[static_cast<size_t>(Counter::store_read_bytes)] = 48.0 * kMib;
  numbers.hit_ratio = 0.5;
  numbers.took = {100, 8'200, 14'100, 20'000, 30'000};
  numbers.resident_bytes = 6 * kMib;
  numbers.dirty_bytes = 2 * kMib;
  numbers.device = DeviceUse{0.97, 3.2, 100.0 * kMib, 0, 25'000};
  return numbers;
}

// A run of eight workers below a shell, of which the first is watched.
View eight() {
  View view;
  top::Run run{9, {}, 32 * kMib};
  run.processes.push_back(process(100, 1, "sh -c job", 0));
  run.processes[0].has_page = false;
  run.processes[0].misses_s.reset();
  run.processes[0].held_bytes = 0;
  run.processes[0].share->is_member = false;
  for (uint64_t i = 1; i <= 8; ++i)
    run.processes.push_back(process(100 + i, 100, "worker " + std::to_string(i), static_cast<double>(i)));
  view.runs.push_back(run);
  Watched watched;
  watched.facts.process = 101;
  watched.facts.program = "/usr/bin/worker";
  watched.facts.engine = "mapped";
  watched.facts.store = "spill:/mnt";
  watched.facts.memory_cap_bytes = 32 * kMib;
  watched.device_name = "nvme0n1";
  for (int i = 0; i < 200; ++i) watched.history.add(sample(i));
  watched.areas.push_back({0x200000001000, 24 * kMib, 90, 0.9,
                           "24.0 MiB at 0x200000001000, allocated in build() (p+0x1)", "build() (p+0x1)"});
  watched.areas.push_back({0, 0, 10, 0.1, "small objects", "small objects"});
  watched.latencies_now.counts[telemetry::latency_class(8'200)] = 99;
  watched.latencies_now.counts[telemetry::latency_class(3'000'000)] = 1;
  watched.latencies_now.worst_ns = 3'100'000;
  watched.latencies_all = watched.latencies_now;
  for (int i = 0; i < 100; ++i) watched.trace.push_back("event " + std::to_string(i));
  view.watched = std::move(watched);
  view.selected = 101;
  return view;
}

std::string screen(View& view, int columns, int lines) {
  Canvas canvas(columns, lines, view.charset);
  draw(canvas, view);
  std::string text;
  for (int line = 0; line < canvas.lines(); ++line) text += canvas.line_text(line) + "\n";
  return text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

struct ViewTest : ::testing::Test {
  ViewTest() {
    if (::setlocale(LC_CTYPE, "C.UTF-8") == nullptr) ADD_FAILURE() << "there is no locale C.UTF-8";
  }
  View view = eight();
};

TEST_F(ViewTest, says_the_numbers_beside_their_graphs) {
  const std::string text = screen(view, 120, 30);
  for (const char* part :
       {"worker 1 (101)", "memory     [", " of 32.0 MiB 200 %", "dirty 2.0 MiB", "others of the run 56.0 MiB",
        "50.0 % of", "12.3k/s", "p50 8.2 us, p99 14.1 us", "read       48.0 MiB/s, device 100.0 MiB/s",
        "nvme0n1 97.0 % busy, 3.2 in flight", "███", "graphs: the last 1 min 0", "F1 ? help"})
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
}

TEST_F(ViewTest, has_its_numbers_and_keys_at_40_by_10) {
  const std::string text = screen(view, 40, 10);
  for (const char* part : {"memory     [", "hit ratio  50.0 %", "misses     12.3k/s", "8.2 us, 14.1 us",
                           "waiting", "? help  q quit"})
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  EXPECT_FALSE(has(text, "PROGRAM")) << "no room for the tree";
  press(view, 'a');
  EXPECT_TRUE(has(screen(view, 40, 10), "90 %   24.0 MiB build()")) << screen(view, 40, 10);
  press(view, 't');
  EXPECT_TRUE(has(screen(view, 40, 10), "└─ worker 1")) << screen(view, 40, 10);
  press(view, 't');
  EXPECT_TRUE(has(screen(view, 40, 10), "hit ratio")) << "the same key a second time: the numbers again";
}

TEST_F(ViewTest, can_be_drawn_at_any_size_in_any_state) {
  for (const Charset charset : {Charset::kUtf8, Charset::kAscii})
    for (const uint32_t key : {uint32_t{'t'}, uint32_t{'a'}, uint32_t{'l'}, uint32_t{'r'}, uint32_t{'?'}}) {
      view = eight();
      view.charset = charset;
      press(view, key);
      for (int columns = 1; columns < 260; columns += columns < 50 ? 1 : 37)
        for (int lines = 1; lines < 90; lines += lines < 30 ? 1 : 13) {
          const std::string text = screen(view, columns, lines);
          ASSERT_EQ(std::count(text.begin(), text.end(), '\n'), lines);
          const bool is_too_small = columns < View::kColumnsMin || lines < View::kLinesMin;
          ASSERT_EQ(text.starts_with("too small") || columns < 9, is_too_small || columns < 9)
              << columns << "x" << lines << text;
        }
    }
}

TEST_F(ViewTest, in_ascii_has_nothing_else) {
  view.charset = Charset::kAscii;
  for (const char key : {'t', 'a', 'l', 'r', '?'}) {
    press(view, static_cast<uint32_t>(key));
    for (const char c : screen(view, 120, 40)) ASSERT_GE(c, '\n') << "a letter beyond ASCII";
    if (view.shows_help) press(view, kKeyBack);
  }
}

TEST_F(ViewTest, shows_the_tree_in_order_of_misses_and_the_selected_line) {
  const std::string text = screen(view, 100, 30);
  size_t at = text.find("sh -c job");
  ASSERT_NE(at, text.npos) << text;
  for (int i = 8; i >= 1; --i) {
    const size_t next = text.find("worker " + std::to_string(i), at);
    ASSERT_NE(next, text.npos) << i << "\n" << text;
    at = next;
  }
  EXPECT_TRUE(has(text, "   25.0       8 ├─ worker 8")) << text;
  EXPECT_TRUE(has(text, "└─ worker 1")) << text;
  Canvas canvas(100, 30, Charset::kUtf8);
  draw(canvas, view);
  int painted = 0;
  for (int line = 1; line < 30; ++line) painted += canvas.at(0, line).style == Style::kSelected;
  EXPECT_EQ(painted, 1);
}

TEST_F(ViewTest, moves_the_selection_and_scrolls_along) {
  screen(view, 80, 18);
  press(view, kKeyHome);
  EXPECT_EQ(view.selected, 100u);
  press(view, kKeyDown);
  EXPECT_EQ(view.selected, 108u) << "the one that misses most";
  press(view, kKeyUp);
  press(view, kKeyUp);
  EXPECT_EQ(view.selected, 100u);
  press(view, kKeyEnd);
  EXPECT_EQ(view.selected, 101u);
  EXPECT_FALSE(has(screen(view, 80, 18), "sh -c job")) << "scrolled away";
  press(view, kKeyPageUp);
  EXPECT_EQ(view.selected, 100u);
  EXPECT_TRUE(has(screen(view, 80, 18), "sh -c job"));
  EXPECT_EQ(press(view, kKeyEnter), Action::kWatch);
}

TEST_F(ViewTest, selects_something_else_when_the_selected_has_gone) {
  view.selected = 12345;
  screen(view, 80, 24);
  EXPECT_EQ(view.selected, 100u);
}

TEST_F(ViewTest, sorts_what_is_shown) {
  press(view, 's');
  EXPECT_EQ(view.process_sort, ProcessSort::kResident);
  EXPECT_TRUE(has(screen(view, 120, 30), "s sort: resident"));
  for (int i = 0; i < 3; ++i) press(view, 's');
  EXPECT_EQ(view.process_sort, ProcessSort::kMisses);
  press(view, 'a');
  std::string text = screen(view, 120, 30);
  EXPECT_LT(text.find("build()"), text.find("small objects"));
  view.watched->areas[1].bytes = 64 * kMib;
  press(view, 's');
  text = screen(view, 120, 30);
  EXPECT_GT(text.find("build()"), text.find("small objects")) << "by size";
}

TEST_F(ViewTest, explains_its_keys_and_goes_back) {
  press(view, kKeyF1);
  std::string text = screen(view, 80, 40);
  for (const char* part : {"quit", "pause", "allocations", "latencies", "trace", "hit ratio", "Esc"})
    EXPECT_TRUE(has(text, part)) << part;
  press(view, kKeyDown);
  EXPECT_TRUE(view.shows_help) << "scrolls";
  EXPECT_EQ(press(view, kKeyBack), Action::kNone);
  EXPECT_FALSE(view.shows_help);
  EXPECT_EQ(press(view, kKeyBack), Action::kBack);
  EXPECT_EQ(press(view, 'q'), Action::kQuit);
}

TEST_F(ViewTest, pauses_and_changes_its_interval) {
  press(view, 'p');
  EXPECT_TRUE(has(screen(view, 80, 24), "PAUSED"));
  press(view, 'p');
  EXPECT_FALSE(has(screen(view, 80, 24), "PAUSED"));
  EXPECT_EQ(press(view, '+'), Action::kInterval);
  EXPECT_TRUE(has(screen(view, 80, 24), "every 2 s"));
  for (int i = 0; i < 20; ++i) press(view, '-');
  EXPECT_DOUBLE_EQ(view.interval_s, 0.1);
  for (int i = 0; i < 20; ++i) press(view, '+');
  EXPECT_DOUBLE_EQ(view.interval_s, 60);
  view.interval_s = 0.7;
  press(view, '-');
  EXPECT_DOUBLE_EQ(view.interval_s, 0.5);
}

TEST_F(ViewTest, shows_latencies_by_doublings) {
  press(view, 'l');
  const std::string text = screen(view, 80, 40);
  EXPECT_TRUE(has(text, "8.2 us    0.0 %") || has(text, "16.4 us   99.0 %")) << text;
  EXPECT_TRUE(has(text, "4.2 ms    1.0 %")) << text;
  view.watched->latencies_all = view.watched->latencies_now = {};
  EXPECT_TRUE(has(screen(view, 80, 40), "no miss since")) << "nothing to show";
}

TEST_F(ViewTest, scrolls_the_trace_back_from_the_newest) {
  press(view, 'r');
  EXPECT_TRUE(has(screen(view, 80, 24), "event 99"));
  press(view, kKeyHome);
  std::string text = screen(view, 80, 24);
  EXPECT_TRUE(has(text, "event 0\n")) << text;
  EXPECT_FALSE(has(text, "event 99"));
  press(view, kKeyEnd);
  EXPECT_TRUE(has(screen(view, 80, 24), "event 99"));
}

TEST_F(ViewTest, lists_runs_to_choose_from) {
  view.watched.reset();
  top::Run other{200, {process(200, 1, "other", 3)}, 0};
  view.runs.push_back(other);
  view.selected = 0;
  const std::string text = screen(view, 100, 12);
  EXPECT_TRUE(has(text, "choose a run"));
  EXPECT_TRUE(has(text, "101          9   64.0 MiB   32.0 MiB      36 worker 1")) << text;
  EXPECT_EQ(view.selected, 101u);
  press(view, kKeyDown);
  EXPECT_EQ(view.selected, 200u);
  EXPECT_EQ(press(view, kKeyEnter), Action::kWatch);
  view.runs.clear();
  EXPECT_TRUE(has(screen(view, 100, 12), "no program runs under Spillway now"));
}

TEST_F(ViewTest, shows_hostile_names_as_text) {
  view.runs[0].processes[1].program = "a\x1b[2J\xe2\x80\xae";
  view.watched->facts.store = std::string(5000, '\x07');
  view.watched->areas[0].maker = "\x1b]0;owned\x07";
  press(view, 'a');
  const std::string text = screen(view, 100, 30);
  EXPECT_EQ(text.find('\x1b'), text.npos);
  EXPECT_EQ(text.find('\x07'), text.npos);
}

TEST_F(ViewTest, without_a_look_yet_says_so) {
  view.watched->history = {};
  view.watched->areas.clear();
  view.watched->trace.clear();
  for (const char key : {'t', 'a', 'l', 'r'}) {
    press(view, static_cast<uint32_t>(key));
    EXPECT_TRUE(has(screen(view, 100, 30), "looking ..."));
  }
}

TEST(Screen, says_what_is_compressed) {
  View view = eight();
  EXPECT_FALSE(has(screen(view, 140, 30), "compressed"));
  Numbers numbers = sample(100);
  numbers.compressed_bytes = 3 * kMib;
  numbers.compressed_ratio = 2.6;
  numbers.rates[static_cast<size_t>(Counter::compressed_hits)] = 8'100;
  view.watched->history.add(numbers);
  EXPECT_TRUE(has(screen(view, 140, 30), "compressed 3.0 MiB (1/2.6)"));
  EXPECT_TRUE(has(screen(view, 140, 30), "48.0 MiB/s, compressed 8.1k/s"));
}

TEST(Scrolled, keeps_the_selected_in_sight) {
  EXPECT_EQ(scrolled(0, 5, 10, 3), 3);
  EXPECT_EQ(scrolled(7, 2, 10, 3), 2);
  EXPECT_EQ(scrolled(4, 5, 10, 3), 4) << "no further than it has to";
  EXPECT_EQ(scrolled(100, -1, 10, 3), 7);
  EXPECT_EQ(scrolled(-5, -1, 10, 3), 0);
  EXPECT_EQ(scrolled(3, 0, 2, 5), 0);
  EXPECT_EQ(scrolled(3, 1, 10, 0), 0);
}

}  // namespace
}  // namespace spw::tool::top
