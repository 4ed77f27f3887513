#include "top/screen.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "messages.h"
#include "platform/time.h"
#include "top/plain.h"
#include "top/trace.h"
#include "top/view.h"

namespace spw::tool::top {

namespace {

using telemetry::LivePage;

constexpr double kFirstIntervalS = 0.3;  // so that there is something to see at once
constexpr double kRunsIntervalS =
    1;  // between two looks at all processes, which cost more than one at a page

// All that is kept of the process that is watched, beside what is shown of it.
struct Source {
  LivePage page;
  Device device;
  Areas areas;
  Look before;
  LivePage::TraceCounts traced;
  telemetry::Latencies latencies_begin;
  uint64_t started = 0;  // as start_of() has it
  uint64_t run = 0;
};

class Session {
 public:
  Session(std::unique_ptr<Terminal> terminal, uint64_t process, const TopArguments& arguments)
      : terminal_(std::move(terminal)) {
    view_.interval_s = arguments.interval_s;
    if (arguments.trace) {
      view_.pane = Pane::kTrace;
      view_.pane_is_open = true;
    }
    has_pane_ = arguments.trace;
    stays_in_list_ = process == 0;
  }

  // Nothing: it can be watched from now on.
  Status watch(uint64_t process);
  int run();
  void close() { terminal_.reset(); }

 private:
  void look();
  void look_at_runs();
  void follow_end();
  void act(Action action);
  Event wait();

  std::unique_ptr<Terminal> terminal_;
  View view_;
  Processes processes_;
  std::unique_ptr<Source> source_;
  bool has_pane_ = false;       // one was chosen
  bool stays_in_list_ = false;  // when what is watched has ended, as it was chosen there
  bool is_over_ = false;
  int signal_ = 0;
  uint64_t next_ns_ = 0, next_runs_ns_ = 0;
  std::string last_words_;
};

uint64_t after(double seconds) { return platform::monotonic_ns() + static_cast<uint64_t>(seconds * 1e9); }

Status Session::watch(uint64_t process) {
  const uint64_t started = start_of(process);
  auto page = LivePage::open(process);
  if (!page) return page.status();
  auto facts = facts_of(process, *page);
  if (!facts) return facts.status();
  Watched watched;
  watched.facts = *facts;
  Device device(facts->store_path);
  watched.device_name = device.name();
  Look before = look_at(*page, device);
  source_.reset(new Source{
      std::move(*page), std::move(device), Areas(process), before, {}, before.latencies, started, 0});
  (void)source_->areas.look(source_->page, *facts);
  (void)trace_lines(source_->page, *facts, source_->traced);
  view_.watched = std::move(watched);
  view_.selected = process;
  view_.scroll = 0;
  look_at_runs();
  if (const Run* run = view_.run()) source_->run = run->id;
  if (!has_pane_)
    view_.pane = view_.run() && view_.run()->processes.size() > 1 ? Pane::kTree : Pane::kAllocations;
  next_ns_ = after(std::min(kFirstIntervalS, view_.interval_s));
  return {};
}

void Session::look_at_runs() {
  view_.runs = processes_.look();
  next_runs_ns_ = after(std::max(kRunsIntervalS, view_.interval_s));
}

void Session::look() {
  if (platform::monotonic_ns() >= next_runs_ns_) look_at_runs();
  next_ns_ = after(view_.interval_s);
  if (!source_) return;
  Watched& watched = *view_.watched;
  Look now = look_at(source_->page, source_->device);
  watched.history.add(numbers_between(source_->before, now, watched.facts));
  watched.latencies_now = now.latencies.since(source_->before.latencies);
  watched.latencies_all = now.latencies.since(source_->latencies_begin);
  watched.areas = source_->areas.look(source_->page, watched.facts);
  watched.running_s = static_cast<double>(now.at_ns - std::min(now.at_ns, watched.facts.started_ns)) / 1e9;
  for (std::string& line : trace_lines(source_->page, watched.facts, source_->traced))
    watched.trace.push_back(std::move(line));
  while (watched.trace.size() > View::kTraceLinesMax) watched.trace.pop_front();
  source_->before = now;
}

// The watched process has ended: on to another one of its run, or that was it.
void Session::follow_end() {
  const uint64_t ended = view_.watched->facts.process, run_id = source_->run;
  const std::string words = fmt::format("{} has ended", ended);
  std::string shown;
  if (!view_.watched->history.is_empty())
    shown = picture(view_.watched->facts, view_.watched->device_name, view_.watched->history.newest(),
                    view_.watched->running_s, hottest_lines(view_.watched->areas), nullptr);
  source_.reset();
  view_.watched.reset();
  look_at_runs();
  for (const Run& run : view_.runs)
    if (run.id == run_id && run.first() && watch(run.first()->id)) {
      view_.message = words + "; this is another one of its run";
      return;
    }
  if (stays_in_list_ && !view_.runs.empty()) {
    view_.message = words;
    return;
  }
  is_over_ = true;
  last_words_ = shown + words + "\n";
}

void Session::act(Action action) {
  switch (action) {
    case Action::kNone:
      break;
    case Action::kQuit:
      is_over_ = true;
      break;
    case Action::kWatch:
      if (view_.selected == 0 || (view_.watched && view_.selected == view_.watched->facts.process)) break;
      if (Status status = watch(view_.selected); !status) view_.message = status.message();
      break;
    case Action::kBack:
      stays_in_list_ = true;
      view_.selected = view_.run() && view_.run()->first() ? view_.run()->first()->id : 0;
      view_.watched.reset();
      source_.reset();
      view_.scroll = 0;
      look_at_runs();
      break;
    case Action::kInterval:
      next_ns_ = std::min(next_ns_, after(view_.interval_s));
      break;
    case Action::kRedraw:
      terminal_->draw_anew();
      break;
  }
}

// Until a key, or until the next look is due.
Event Session::wait() {
  constexpr uint64_t kLongestNs = 1'000'000'000, kMs = 1'000'000;
  const uint64_t now = platform::monotonic_ns();
  const uint64_t left = view_.is_paused ? kLongestNs : next_ns_ - std::min(now, next_ns_);
  return terminal_->wait(static_cast<int>((std::min(left, kLongestNs) + kMs - 1) / kMs));
}

int Session::run() {
  if (!source_) look_at_runs();
  while (!is_over_) {
    if (source_ && !is_running(view_.watched->facts.process, source_->started)) follow_end();
    if (is_over_) break;
    if (!view_.is_paused && platform::monotonic_ns() >= next_ns_) look();
    Canvas canvas = terminal_->canvas();
    draw(canvas, view_);
    terminal_->show(canvas);
    const Event event = wait();
    if (event.kind == Event::kEnd) {
      signal_ = event.signal;
      is_over_ = true;
    } else if (event.kind == Event::kKey) {
      const Pane pane = view_.pane;
      act(press(view_, event.key));
      has_pane_ = has_pane_ || view_.pane != pane;
    }
  }
  terminal_.reset();
  if (signal_ != 0) ::raise(signal_);
  fmt::print("{}", last_words_);
  return kExitOk;
}

}  // namespace

int watch_on_screen(std::unique_ptr<Terminal> terminal, uint64_t process, const TopArguments& arguments) {
  Session session(std::move(terminal), process, arguments);
  if (process != 0)
    if (Status status = session.watch(process); !status) {
      session.close();
      return refuse(status.message());
    }
  return session.run();
}

}  // namespace spw::tool::top
