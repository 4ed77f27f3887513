// `spillway top`: a running program's counters, look by look.
#include <fmt/core.h>
#include <locale.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "commands.h"
#include "messages.h"
#include "telemetry/live_page.h"
#include "top/crash.h"
#include "top/plain.h"
#include "top/processes.h"
#include "top/screen.h"
#include "top/terminal.h"
#include "top/text.h"

namespace spw::tool {

namespace {

using namespace top;
using telemetry::LivePage;

constexpr auto kWaitPeriod = std::chrono::milliseconds(200);

// Until there is something to watch; false after a line that says why there never will be.
bool wait_for_process(uint64_t process) {
  fmt::print(stderr, "spillway: waiting for {} (Ctrl-C ends it)\n",
             process == 0 ? "a program that runs under Spillway"
                          : fmt::format("process {} to use managed memory", process));
  const uint64_t started = process == 0 ? 0 : start_of(process);
  for (;; std::this_thread::sleep_for(kWaitPeriod)) {
    if (process == 0 && !LivePage::processes().empty()) return true;
    if (process == 0) continue;
    auto page = LivePage::open(process);
    if (page) return true;
    if (page.status().error() == ESRCH && is_running(process, started)) continue;
    refuse(started == 0 ? fmt::format("there is no process {}", process) : page.status().message());
    return false;
  }
}

// Without what follows the first words.
std::string brief(const std::string& program) {
  constexpr size_t kLettersMax = 40;
  std::string text;
  std::string_view rest = program;
  for (size_t i = 0; i < kLettersMax && !rest.empty(); ++i) append_letter(text, next_letter(rest));
  return rest.empty() ? text : text + "...";
}

// The process that is meant where none was named; 0 after a line that says why there is none.
uint64_t only_process(const std::vector<Run>& runs) {
  if (runs.size() == 1) return runs.front().first()->id;
  if (runs.empty()) {
    // There may be one that cannot be watched, and its page says why.
    const std::vector<uint64_t> others = LivePage::processes();
    if (others.empty()) {
      refuse(
          "no program of yours runs under Spillway now; start one with `spillway run --memory 4G -- "
          "PROGRAM`, or wait "
          "for one with --wait");
    } else {
      auto page = LivePage::open(others.front());
      refuse(page ? "the program has only begun; try again" : page.status().message());
    }
    return 0;
  }
  std::string names;
  for (const Run& run : runs)
    names +=
        fmt::format("{}{} ({})", names.empty() ? "" : ", ", run.first()->id, brief(run.first()->program));
  refuse("several programs run under Spillway; name one: " + names);
  return 0;
}

}  // namespace

int show_top(const TopArguments& arguments) {
  ::setlocale(LC_CTYPE, "");
  uint64_t process = arguments.process;
  if (arguments.wait && !wait_for_process(process)) return kExitUsage;
  const bool is_text =
      arguments.plain || arguments.count != 0 || ::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1;
  std::vector<Run> runs;
  if (process == 0) runs = Processes().look();
  const bool chooses = process == 0 && !is_text && runs.size() > 1;
  if (process == 0 && !chooses) process = only_process(runs);
  if (process == 0 && !chooses) return kExitUsage;
  if (is_text) return watch_as_text(process, arguments);
  // Refused before the screen changes.
  if (process != 0)
    if (auto page = LivePage::open(process); !page) return refuse(page.status().message());
  std::string why;
  auto terminal = Terminal::open(&why);
  if (terminal) return watch_on_screen(std::move(terminal), process, arguments);
  warn(why + "; plain text follows");
  if (process == 0) process = only_process(runs);
  return process == 0 ? kExitUsage : watch_as_text(process, arguments);
}

}  // namespace spw::tool
