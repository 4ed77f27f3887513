#include "top/processes.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "platform/proc_text.h"
#include "platform/time.h"
#include "top/numbers.h"
#include "top/text.h"

namespace spw::tool::top {

namespace {

using telemetry::Counter;
using telemetry::LivePage;

// The fields of /proc/PID/stat (proc_pid_stat(5)) that are of interest.
struct Stat {
  char state = 'X';
  uint64_t parent = 0, started = 0, resident_pages = 0;
  std::string name;
};

std::optional<Stat> stat_of(uint64_t process) {
  constexpr size_t kParent = 4, kStarted = 22, kResident = 24;  // counted from 1
  auto text = platform::read_small_file("/proc/" + std::to_string(process) + "/stat");
  if (!text) return std::nullopt;
  const size_t open = text->find('('), close = text->rfind(')');  // the name may hold any of these
  if (open == text->npos || close == text->npos || close < open || close + 2 >= text->size())
    return std::nullopt;
  Stat stat;
  stat.name = text->substr(open + 1, close - open - 1);
  stat.state = (*text)[close + 2];
  const char* at = text->c_str() + close + 3;
  for (size_t field = kParent; field <= kResident; ++field) {
    char* end = nullptr;
    const uint64_t value = std::strtoull(at, &end, 10);
    if (end == at) return std::nullopt;
    at = end;
    if (field == kParent) stat.parent = value;
    if (field == kStarted) stat.started = value;
    if (field == kResident) stat.resident_pages = value;
  }
  return stat;
}

// "sort -n data", without the directories of the first word; the kernel's name where there are no words.
std::string program_of(uint64_t process, const Stat& stat) {
  auto words = platform::read_small_file("/proc/" + std::to_string(process) + "/cmdline");
  std::string text = words ? *words : std::string();
  while (!text.empty() && text.back() == '\0') text.pop_back();
  const size_t first = std::min(text.find('\0'), text.size());
  if (const size_t slash = text.substr(0, first).rfind('/'); slash != text.npos) text.erase(0, slash + 1);
  std::replace(text.begin(), text.end(), '\0', ' ');
  return printable(text.empty() ? stat.name : text, Charset::kUtf8);
}

// Of what is resident, what is in no file: managed memory before anything was evicted, and small allocations.
uint64_t private_bytes_of(uint64_t process) {
  auto text = platform::read_small_file("/proc/" + std::to_string(process) + "/status");
  if (!text) return 0;
  return platform::kib_field(*text, "RssAnon:").value_or(0) +
         platform::kib_field(*text, "RssShmem:").value_or(0);
}

}  // namespace

std::optional<double> Process::cap_share() const {
  if (!share || !share->is_member || share->cap_bytes == 0) return std::nullopt;
  return static_cast<double>(held_bytes) / static_cast<double>(share->cap_bytes);
}

uint64_t Run::held_bytes() const {
  uint64_t sum = 0;
  for (const Process& process : processes) sum += process.held_bytes;
  return sum;
}

double Run::misses_s() const {
  double sum = 0;
  for (const Process& process : processes) sum += process.misses_s.value_or(0);
  return sum;
}

const Process* Run::first() const {
  const Process* found = nullptr;
  for (const Process& process : processes)
    if (process.has_page &&
        (!found || std::pair(process.started, process.id) < std::pair(found->started, found->id)))
      found = &process;
  return found;
}

void Processes::look_at_page(Process& process, std::map<std::pair<uint64_t, uint64_t>, Watched>& kept) {
  const std::pair key(process.id, process.started);
  auto node = watched_.extract(key);
  const bool is_new = node.empty();
  if (is_new) {
    auto page = LivePage::open(process.id);
    if (!page) return;
    kept.emplace(key, Watched{std::move(*page)});
  } else {
    kept.insert(std::move(node));
  }
  Watched& watched = kept.at(key);
  const telemetry::Totals totals = watched.page.totals();
  const uint64_t misses = total(totals, Counter::shared_misses), now_ns = platform::monotonic_ns();
  process.has_page = true;
  if (!is_new && now_ns > watched.at_ns)
    process.misses_s = static_cast<double>(misses - std::min(misses, watched.misses)) * 1e9 /
                       static_cast<double>(now_ns - watched.at_ns);
  watched.misses = misses;
  watched.at_ns = now_ns;
  process.held_bytes = resident_blocks(totals) * watched.page.header().block_bytes;
}

std::vector<Run> Processes::look() {
  std::map<std::pair<uint64_t, uint64_t>, Watched> kept;
  std::map<uint64_t, Run> by_ledger, alone;
  for (const uint64_t number : platform::process_numbers()) {
    if (number == static_cast<uint64_t>(::getpid())) continue;
    Process process;
    process.id = number;
    if (auto share = process::TreeCap::share_of(number)) process.share = *share;
    const auto stat = stat_of(number);
    if (!stat || stat->state == 'Z' || stat->state == 'X') continue;
    process.parent = stat->parent;
    process.started = stat->started;
    process.resident_bytes = stat->resident_pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    look_at_page(process, kept);
    if (!process.share && !process.has_page) continue;
    if (process.share) process.held_bytes = std::max(process.held_bytes, process.share->held_bytes);
    if (process.held_bytes == 0 && process.has_page) process.held_bytes = private_bytes_of(number);
    process.program = program_of(number, *stat);
    Run& run = process.share ? by_ledger[process.share->run] : alone[number];
    run.id = process.share ? process.share->run : number;
    run.cap_bytes = process.share ? process.share->cap_bytes : 0;
    run.processes.push_back(std::move(process));
  }
  watched_ = std::move(kept);
  std::vector<Run> runs;
  for (auto* each : {&by_ledger, &alone})
    for (auto& [id, run] : *each)
      if (run.first()) runs.push_back(std::move(run));
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return std::pair(a.first()->started, a.first()->id) < std::pair(b.first()->started, b.first()->id);
  });
  return runs;
}

uint64_t start_of(uint64_t process) {
  const auto stat = stat_of(process);
  return stat && stat->state != 'Z' && stat->state != 'X' ? stat->started : 0;
}

bool is_running(uint64_t process, uint64_t started) { return started != 0 && start_of(process) == started; }

const Run* run_of(const std::vector<Run>& runs, uint64_t process) {
  for (const Run& run : runs)
    for (const Process& each : run.processes)
      if (each.id == process) return &run;
  return nullptr;
}

}  // namespace spw::tool::top
