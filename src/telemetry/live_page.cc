#include "telemetry/live_page.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <tuple>

#include "platform/proc_text.h"

namespace spw::telemetry {

namespace {

void put_text(char (&to)[LiveHeader::kTextBytes], const std::string& text) {
  const size_t bytes = std::min(text.size(), sizeof(to) - 1);
  std::memcpy(to, text.data(), bytes);
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

// The paths under which this process can open the other's pages, of which a forked child has its parent's, too; none,
// with errno.
std::vector<std::string> find_pages(uint64_t process) {
  const std::string place = "/proc/" + std::to_string(process) + "/fd/";
  const Directory directory(::opendir(place.c_str()));
  if (!directory) return {};
  const std::string wanted = std::string("/memfd:") + kLivePageName + " (deleted)";
  std::vector<std::string> found;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string name = entry->d_name;
    char target[sizeof("/memfd:") + LiveHeader::kTextBytes];
    const ssize_t bytes = ::readlink((place + name).c_str(), target, sizeof target);
    if (bytes > 0 && std::string(target, static_cast<size_t>(bytes)) == wanted) found.push_back(place + name);
  }
  errno = ESRCH;
  return found;
}

// What the process calls itself, in the innermost namespace of process ids that it is in.
uint64_t own_number_of(uint64_t process) {
  auto status = platform::read_small_file("/proc/" + std::to_string(process) + "/status");
  if (!status) return process;
  const size_t line = status->find("\nNSpid:");
  if (line == std::string::npos) return process;
  const std::string numbers = status->substr(line + 1, status->find('\n', line + 1) - line - 1);
  return std::strtoull(numbers.c_str() + numbers.find_last_of(" \t:") + 1, nullptr, 10);
}

}  // namespace

Result<LivePage> LivePage::publish(const Facts& facts, uint64_t started_ns) {
  LivePage page;
  auto file = platform::create_sealed_memory_file(kLivePageName, kBytes);
  if (!file) return file.status();
  page.file_ = std::move(*file);
  auto memory = platform::map_file(page.file_, 0, kBytes, platform::Protection::kReadWrite);
  if (!memory) return memory.status();
  page.memory_ = std::move(*memory);
  auto* header = new (page.memory_.data()) LiveHeader;
  header->counter_count = kCounterCount;
  header->schema = kReportSchema;
  header->process = facts.process;
  header->started_ns = started_ns;
  header->block_bytes = facts.block_bytes;
  header->memory_cap_bytes = facts.memory_cap_bytes;
  header->frames = facts.frames;
  put_text(header->program, facts.program);
  put_text(header->engine, facts.engine);
  put_text(header->store, facts.store);
  header->magic = LiveHeader::kMagic;
  place_areas(new (page.memory_.data() + kAreasOffset) AreaTable);
  place_counters(page.memory_.data() + kBlocksOffset, kBytes - kBlocksOffset, header->used);
  return page;
}

Result<LivePage> LivePage::open(uint64_t process) {
  const std::vector<std::string> paths = find_pages(process);
  const std::string who = "process " + std::to_string(process);
  if (paths.empty()) {
    if (errno == EACCES)
      return Status::sentence(EACCES, who + " belongs to somebody else; try as its user or as root");
    return Status::sentence(ESRCH, who + " does not run under Spillway, or has used no managed memory yet");
  }
  const uint64_t own_number = own_number_of(process);
  Status last;
  for (const std::string& path : paths) {
    auto file = platform::open_file(path, O_RDONLY);
    auto page = file ? open_file(std::move(*file), who) : Result<LivePage>(file.status());
    if (!page) {
      last = page.status();
      continue;
    }
    if (page->header().process == process || page->header().process == own_number) return page;
    last = Status::sentence(ESRCH, who + " is a forked child, which has no managed memory of its own");
  }
  return last;
}

Result<LivePage> LivePage::open_file(platform::File file, const std::string& who) {
  LivePage page;
  page.file_ = std::move(file);
  const Status other = Status::sentence(EPROTO, who + " runs with another version of Spillway");
  // The seal first: the size that is seen then stays.
  if (!platform::cannot_shrink(page.file_)) return other;
  const auto bytes = platform::file_size(page.file_);
  if (!bytes || *bytes != kBytes) return other;
  auto memory = platform::map_file(page.file_, 0, kBytes, platform::Protection::kRead);
  if (!memory) return memory.status();
  page.memory_ = std::move(*memory);
  const LiveHeader& header = page.header();
  if (header.magic != LiveHeader::kMagic || header.counter_count != kCounterCount ||
      header.schema != kReportSchema)
    return other;
  return page;
}

std::vector<uint64_t> LivePage::processes() {
  std::vector<uint64_t> found;
  for (const uint64_t process : platform::process_numbers()) {
    if (find_pages(process).empty()) continue;
    if (auto page = open(process); page || page.status().error() != ESRCH) found.push_back(process);
  }
  return found;
}

Totals LivePage::totals() const {
  Totals totals{};
  for (const CounterBlock& block : blocks())
    for (size_t i = 0; i < kCounterCount; ++i) totals[i] += block.words[i].load_relaxed();
  return totals;
}

Latencies LivePage::miss_latencies() const {
  Latencies latencies;
  for (const CounterBlock& block : blocks()) latencies.add(block.miss_latencies);
  return latencies;
}

std::span<const CounterBlock> LivePage::blocks() const {
  return {reinterpret_cast<const CounterBlock*>(memory_.data() + kBlocksOffset),
          std::min<size_t>(header().used.load_acquire(), kThreadsMax)};
}

std::vector<Area> LivePage::areas() const {
  return areas_in(*reinterpret_cast<const AreaTable*>(memory_.data() + kAreasOffset));
}

LivePage::MissCounts LivePage::miss_counts() const { return miss_counts(blocks()); }

LivePage::MissCounts LivePage::miss_counts(std::span<const CounterBlock> blocks) {
  MissCounts counts;
  for (const CounterBlock& block : blocks)
    counts.push_back(block.words[static_cast<size_t>(Counter::shared_misses)].load_relaxed());
  return counts;
}

std::vector<LivePage::Missed> LivePage::missed_since(MissCounts& before) const {
  std::vector<Missed> missed;
  const std::span<const CounterBlock> all = blocks();  // once: how many there are is the other process's word
  const MissCounts now = miss_counts(all);
  for (size_t thread = 0; thread < now.size(); ++thread) {
    const uint64_t count = now[thread] - (thread < before.size() ? before[thread] : 0);
    const uint64_t seen = std::min<uint64_t>(count, CounterBlock::kRecentMisses);
    for (uint64_t i = now[thread] - seen; i < now[thread]; ++i)
      missed.push_back({all[thread].recent_misses[i % CounterBlock::kRecentMisses].load_relaxed(),
                        static_cast<double>(count) / static_cast<double>(seen)});
  }
  before = now;
  return missed;
}

std::vector<LivePage::Placed> LivePage::placed_since(const MissCounts& before) const {
  constexpr uint64_t kEvery = CounterBlock::kPlaceEvery, kKept = CounterBlock::kRecentPlaces;
  std::vector<Placed> placed;
  const std::span<const CounterBlock> all = blocks();
  const MissCounts now = miss_counts(all);
  for (size_t thread = 0; thread < now.size(); ++thread) {
    const uint64_t began = thread < before.size() ? before[thread] : 0;
    // Of those whose number is a multiple of kEvery, from the first that is not in `before`.
    const uint64_t end = (now[thread] + kEvery - 1) / kEvery, first = (began + kEvery - 1) / kEvery;
    const uint64_t seen = std::min(end - std::min(end, first), kKept);
    for (uint64_t i = end - seen; i < end; ++i)
      placed.push_back({all[thread].recent_places[i % kKept].load_relaxed(),
                        static_cast<double>(now[thread] - began) / static_cast<double>(seen)});
  }
  return placed;
}

std::vector<LivePage::Traced> LivePage::trace_since(TraceCounts& seen) const {
  std::vector<Traced> traced;
  std::vector<TraceEntry> entries;
  const std::span<const CounterBlock> all = blocks();
  seen.resize(all.size());
  for (size_t thread = 0; thread < seen.size(); ++thread) {
    entries.clear();
    all[thread].trace.read(seen[thread], entries);
    for (const TraceEntry& entry : entries) {
      traced.push_back({thread, entry});
      seen[thread] = std::max(seen[thread], entry.number + 1);
    }
  }
  std::ranges::sort(traced, {}, [](const Traced& each) {
    return std::tuple(each.entry.at_ns, each.thread, each.entry.number);
  });
  return traced;
}

}  // namespace spw::telemetry
