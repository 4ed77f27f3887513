#include "recorder.h"

#include <fmt/core.h>
#include <time.h>

#include <algorithm>

#include "code_names.h"
#include "contents.h"
#include "platform/proc_text.h"
#include "platform/time.h"

namespace spw::tool {

namespace {

using telemetry::Area;
using telemetry::Counter;
using telemetry::LivePage;
using telemetry::Totals;

constexpr double kSampleEveryS = 0.1, kCountEveryS = 1;  // at first
// Looking for processes reads a list of all that the machine has, and each that is new.
constexpr double kFindEveryS = 0.5;
constexpr double kFindOftenForS = 2;

// Whether the process was started with this variable in its environment.
bool has_variable(uint64_t process, const std::string& variable) {
  const std::string all = std::string(1, '\0') + contents_of(fmt::format("/proc/{}/environ", process));
  return all.find(std::string(1, '\0') + variable + std::string(1, '\0')) != all.npos;
}

// Of the whole process; 0 where it has ended.
uint64_t processor_ns(uint64_t process) {
  clockid_t clock;
  timespec used{};
  if (::clock_getcpuclockid(static_cast<pid_t>(process), &clock) != 0 || ::clock_gettime(clock, &used) != 0)
    return 0;
  return static_cast<uint64_t>(used.tv_sec) * platform::kNsPerSecond + static_cast<uint64_t>(used.tv_nsec);
}

uint64_t resident_bytes(uint64_t process) {
  const auto status = platform::read_small_file(fmt::format("/proc/{}/status", process));
  return status ? platform::kib_field(*status, "VmRSS:").value_or(0) : 0;
}

double per_second(uint64_t now, uint64_t before, double seconds) {
  return now > before ? static_cast<double>(now - before) / seconds : 0;
}

}  // namespace

struct Recorder::Watched {
  explicit Watched(LivePage opened) : page(std::move(opened)) {}

  LivePage page;
  SeenProcess seen;
  uint64_t processor_ns = 0;
  LivePage::MissCounts misses;
  std::string maps;
  std::map<uint64_t, std::string> sites;      // names of places that allocate
  std::map<std::string, Missed> allocations;  // by name
  std::map<uint64_t, double> places;          // misses by place in the code
};

Recorder::Recorder(std::string run, process::TreeCap* tree, Detail detail)
    : run_(std::move(run)),
      tree_(tree),
      detail_(detail),
      started_ns_(platform::monotonic_ns()),
      interval_s_(detail == Detail::kPlaces ? kSampleEveryS : kCountEveryS) {
  looked_ns_ = started_ns_;
  for (const uint64_t process : platform::process_numbers()) others_.insert(process);
}
Recorder::~Recorder() = default;

double Recorder::seconds() const {
  return static_cast<double>(platform::monotonic_ns() - started_ns_) /
         static_cast<double>(platform::kNsPerSecond);
}

void Recorder::find_processes(uint64_t now_ns) {
  const double since_s = static_cast<double>(now_ns - found_ns_) / 1e9;
  if (seconds() > kFindOftenForS && since_s < kFindEveryS) return;
  found_ns_ = now_ns;
  std::set<uint64_t> others;
  for (const uint64_t process : platform::process_numbers()) {
    if (others_.contains(process)) others.insert(process);
    if (watched_.contains(process) || others_.contains(process) || !has_variable(process, run_)) continue;
    auto page = LivePage::open(process);
    if (!page) continue;
    auto watched = std::make_unique<Watched>(std::move(*page));
    const telemetry::LiveHeader& header = watched->page.header();
    const auto text = [](const char(&field)[telemetry::LiveHeader::kTextBytes]) {
      return std::string(field, std::find(field, field + sizeof field, '\0'));
    };
    watched->seen = {.process = process,
                     .program = text(header.program),
                     .engine = text(header.engine),
                     .store = text(header.store),
                     .block_bytes = header.block_bytes,
                     .frames = header.frames,
                     .memory_cap_bytes = header.memory_cap_bytes};
    watched_[process] = std::move(watched);
  }
  others_ = std::move(others);
}

void Recorder::read(Watched& watched) {
  SeenProcess& seen = watched.seen;
  if (seen.has_ended) return;
  seen.totals = watched.page.totals();
  seen.latencies = watched.page.miss_latencies();
  seen.peak_bytes = std::max(seen.peak_bytes, resident_bytes(seen.process));
  seen.seconds = static_cast<double>(platform::monotonic_ns() - watched.page.header().started_ns) / 1e9;
  const uint64_t used = processor_ns(seen.process);
  seen.has_ended = used == 0;
  watched.processor_ns = std::max(watched.processor_ns, used);
  if (detail_ == Detail::kPlaces) note_misses(watched);
}

void Recorder::note_misses(Watched& watched) {
  const LivePage::MissCounts before = watched.misses;
  const std::vector<LivePage::Missed> missed = watched.page.missed_since(watched.misses);
  if (missed.empty()) return;
  std::vector<Area> areas = watched.page.areas();
  std::sort(areas.begin(), areas.end(), [](const Area& a, const Area& b) { return a.begin < b.begin; });
  const uint64_t block_bytes = watched.seen.block_bytes;
  for (const LivePage::Missed& miss : missed) {
    const uint64_t at = miss.block * block_bytes;
    const auto behind = std::upper_bound(areas.begin(), areas.end(), at,
                                         [](uint64_t byte, const Area& area) { return byte < area.begin; });
    const bool is_inside =
        behind != areas.begin() && at - std::prev(behind)->begin < std::prev(behind)->bytes;
    const Area area = is_inside ? *std::prev(behind) : Area{};
    std::string name = area.name;
    if (name.empty() && area.site != 0) {
      std::string& known = watched.sites[area.site];
      if (known.empty())
        known = tool::text_of(names_.of_call_at_address(
            area.site, contents_of(fmt::format("/proc/{}/maps", watched.seen.process))));
      name = known;
    }
    Missed& entry = watched.allocations[name];
    entry.name = name;
    entry.is_file = !area.name.empty();
    entry.bytes = std::max(entry.bytes, area.bytes);
    entry.misses += miss.misses;
  }
  bool is_new = watched.maps.empty();
  for (const LivePage::Placed& placed : watched.page.placed_since(before)) {
    const bool is_known = watched.places.contains(placed.place);
    if (!is_known && watched.places.size() >= kPlacesMax) continue;
    is_new = is_new || !is_known;
    watched.places[placed.place] += placed.misses;
  }
  // While the process lives: a library may have been loaded.
  if (is_new)
    if (std::string maps = contents_of(fmt::format("/proc/{}/maps", watched.seen.process)); !maps.empty())
      watched.maps = std::move(maps);
}

uint64_t Recorder::memory_bytes() const {
  if (const uint64_t noted = tree_ != nullptr ? tree_->resident_bytes() : 0) return noted;
  uint64_t bytes = 0;
  for (const auto& [process, watched] : watched_)
    if (!watched->seen.has_ended) bytes += resident_bytes(process);
  return bytes;
}

void Recorder::add_sample(uint64_t now_ns) {
  const double since_s = static_cast<double>(now_ns - looked_ns_) / 1e9;
  if (since_s <= 0) return;
  Totals now{};
  uint64_t used_ns = 0, processes = 0;
  for (const auto& [process, watched] : watched_) {
    for (size_t i = 0; i < now.size(); ++i) now[i] += watched->seen.totals[i];
    used_ns += watched->processor_ns;
    processes += watched->seen.has_ended ? 0 : 1;
  }
  const auto rate = [&](Counter counter) {
    return per_second(telemetry::total(now, counter), telemetry::total(before_, counter), since_s);
  };
  samples_.push_back({.seconds = static_cast<double>(now_ns - started_ns_) / 1e9,
                      .memory_bytes = memory_bytes(),
                      .misses_per_s = rate(Counter::fills),
                      .hits_per_s = rate(Counter::shared_hits),
                      .read_bytes_per_s = rate(Counter::store_read_bytes),
                      .write_bytes_per_s = rate(Counter::store_write_bytes),
                      .waiting_threads = rate(Counter::fill_wait_ns) / 1e9,
                      .running_threads = per_second(used_ns, processor_before_ns_, since_s) / 1e9,
                      .processes = processes});
  before_ = now;
  processor_before_ns_ = used_ns;
  looked_ns_ = now_ns;
  if (samples_.size() <= kSamplesMax) return;
  for (size_t i = 0; 2 * i + 1 < samples_.size(); ++i) {
    const Sample &first = samples_[2 * i], &second = samples_[2 * i + 1];
    Sample both = second;
    const auto mean = [](double a, double b) { return (a + b) / 2; };
    both.memory_bytes = std::max(first.memory_bytes, second.memory_bytes);
    both.misses_per_s = mean(first.misses_per_s, second.misses_per_s);
    both.hits_per_s = mean(first.hits_per_s, second.hits_per_s);
    both.read_bytes_per_s = mean(first.read_bytes_per_s, second.read_bytes_per_s);
    both.write_bytes_per_s = mean(first.write_bytes_per_s, second.write_bytes_per_s);
    both.waiting_threads = mean(first.waiting_threads, second.waiting_threads);
    both.running_threads = mean(first.running_threads, second.running_threads);
    samples_[i] = both;
  }
  samples_.resize(samples_.size() / 2);
  interval_s_ *= 2;
}

double Recorder::look() {
  const uint64_t now_ns = platform::monotonic_ns();
  find_processes(now_ns);
  for (const auto& [process, watched] : watched_) read(*watched);
  add_sample(now_ns);
  return interval_s_;
}

RunNow Recorder::now(uint64_t cap_bytes) {
  RunNow run{.version = SPW_VERSION, .cap_bytes = cap_bytes};
  find_processes(platform::monotonic_ns());
  for (const auto& [process, watched] : watched_) {
    read(*watched);
    const SeenProcess& seen = watched->seen;
    run.totals += telemetry::run_totals(seen.totals, seen.block_bytes, watched->processor_ns);
    if (seen.has_ended) continue;
    run.processes.push_back({.process = process,
                             .program = seen.program,
                             .engine = seen.engine,
                             .store = seen.store,
                             .totals = seen.totals,
                             .misses = seen.latencies,
                             .block_bytes = seen.block_bytes,
                             .frames = seen.frames,
                             .memory_cap_bytes = seen.memory_cap_bytes,
                             .resident_bytes = resident_bytes(process)});
  }
  run.resident_bytes = memory_bytes();
  if (tree_ == nullptr) return run;
  const process::TreeCap::Account account = tree_->account();
  run.totals.raise_to(account.totals);
  run.needs_bytes = account.needs_bytes;
  return run;
}

std::vector<SeenProcess> Recorder::processes() const {
  std::vector<SeenProcess> all;
  for (const auto& [process, watched] : watched_) all.push_back(watched->seen);
  return all;
}

std::vector<Missed> Recorder::allocations() const {
  std::map<std::string, Missed> by_name;
  for (const auto& [process, watched] : watched_)
    for (const auto& [name, missed] : watched->allocations) {
      Missed& entry = by_name[name];
      const double misses = entry.misses + missed.misses;
      const uint64_t bytes = std::max(entry.bytes, missed.bytes);
      entry = missed;
      entry.misses = misses;
      entry.bytes = bytes;
    }
  std::vector<Missed> all;
  for (const auto& [name, missed] : by_name) all.push_back(missed);
  std::sort(all.begin(), all.end(), [](const Missed& a, const Missed& b) { return a.misses > b.misses; });
  return all;
}

std::vector<MissedAt> Recorder::functions(size_t most) {
  struct Place {
    const Watched* watched;
    uint64_t address;
    double misses;
  };
  std::vector<Place> places;
  for (const auto& [process, watched] : watched_)
    for (const auto& [address, misses] : watched->places)
      if (address != 0) places.push_back({watched.get(), address, misses});
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.misses > b.misses; });
  if (places.size() > most) places.resize(most);
  std::map<std::string, MissedAt> by_name;
  for (const Place& place : places) {
    const CodeName name = names_.at_address(place.address, place.watched->maps);
    MissedAt& entry = by_name[tool::text_of(name)];
    entry.function = name.function.empty() ? tool::text_of(name) : name.function;
    entry.source = name.source;
    entry.library = name.library;
    entry.misses += place.misses;
  }
  std::vector<MissedAt> all;
  for (const auto& [name, missed] : by_name) all.push_back(missed);
  std::sort(all.begin(), all.end(), [](const MissedAt& a, const MissedAt& b) { return a.misses > b.misses; });
  return all;
}

}  // namespace spw::tool
