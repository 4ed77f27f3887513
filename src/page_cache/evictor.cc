#include "page_cache/evictor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/units.h"
#include "platform/machine.h"
#include "platform/time.h"
#include "telemetry/counters.h"

namespace spw::page_cache {

using platform::FilePages;
using telemetry::Counter;

namespace {
constexpr uint64_t kSecondNs = 1'000'000'000;
// Large folios of the page cache are dropped only whole, and readahead makes none above this.
constexpr uint64_t kFolioBytes = 128 * kKiB;
}  // namespace

Status Evictor::start() {
  std::lock_guard lock(mutex_);
  if (started_ || stopping_) {
    wake_.notify_all();
    return {};
  }
  auto before = pages_.present_pages();
  if (!before) return before.status();
  others_.store_relaxed(*before);
  auto thread = platform::Thread::start([this] { run(); });
  if (!thread) return thread.status();
  thread_ = std::move(*thread);
  started_ = true;
  return {};
}

void Evictor::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
    wake_hands_.notify_all();
  }
  thread_.join();
  hands_.clear();  // joins them; the first thread started them, and starts none any more
}

Use Evictor::use() const {
  return {present_.load_relaxed(), unmapped_.load_relaxed(), dropped_.load_relaxed()};
}

bool Evictor::wait(uint64_t ns) {
  std::unique_lock lock(mutex_);
  if (table_.is_empty())
    wake_.wait(lock, [this] { return stopping_ || !table_.is_empty(); });
  else
    wake_.wait_for(lock, std::chrono::nanoseconds(ns), [this] { return stopping_; });
  return !stopping_;
}

void Evictor::run() {
  platform::Thread::prefer_short_slices(kSliceNs);
  for (uint64_t wait_ns = kWaitNsMin; wait(wait_ns);) {
    const uint64_t total = measure();
    const uint64_t limit = limit_(use());
    limit_pages_.store_relaxed(limit);
    const uint64_t slack = std::max(limit / kSlackShare, kSlackPagesMin);
    goal_.store_relaxed(limit > slack ? limit - slack : 0);
    lag_pages_.store_relaxed(limit / kLagShare);
    set_hands_at_work(wanted_hands(limit, total));
    if (hands_at_work_ > 0 && rounds_.load_relaxed() >= round_to_count_) {
      count_all();
      round_to_count_ = rounds_.load_relaxed() + kRoundsMax;
    }
    wait_ns = wait_after(limit, total, wait_ns);
    last_total_ = total;
  }
}

// Twice as many each time they have not caught up, as long as they
// are no more than the threads that keep processors from them.
unsigned Evictor::wanted_hands(uint64_t limit, uint64_t total) const {
  if (total <= goal_.load_relaxed()) return 0;
  if (total <= limit || total < last_total_ || hands_at_work_ == 0) return std::max(hands_at_work_, 1u);
  const unsigned runnable = platform::runnable_threads();
  const unsigned others = runnable - std::min(runnable, hands_at_work_);
  return std::max(hands_at_work_, std::min({hands_at_work_ * 2, others, kHandsMax}));
}

void Evictor::set_hands_at_work(unsigned count) {
  if (count == hands_at_work_) return;
  if (hands_at_work_ == 0) round_to_count_ = rounds_.load_relaxed() + kRoundsMax;
  {
    std::lock_guard lock(mutex_);
    hands_at_work_ = count;
    wake_hands_.notify_all();
  }
  while (hands_.size() < count) {
    const auto number = static_cast<unsigned>(hands_.size());
    auto hand = platform::Thread::start([this, number] { work(number); });
    if (!hand) break;  // those that there are have to do
    hands_.push_back(std::move(*hand));
  }
}

void Evictor::work(unsigned number) {
  platform::Thread::prefer_short_slices(kSliceNs);
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_hands_.wait(lock, [&] { return stopping_ || number < hands_at_work_; });
      if (stopping_) return;
    }
    if (measure_present() > goal_.load_relaxed() && evict_part()) continue;
    std::unique_lock lock(mutex_);
    wake_hands_.wait_for(lock, std::chrono::nanoseconds(kWaitNsMin), [this] { return stopping_; });
  }
}

// The time in which nothing can have come that does not fit; where
// little comes, longer, up to what fits at the disk's usual rate.
uint64_t Evictor::wait_after(uint64_t limit, uint64_t total, uint64_t last_wait_ns) const {
  const uint64_t room_bytes = (limit - std::min(total, limit)) * kMmuPageBytes;
  const uint64_t least = room_bytes / 2 * kSecondNs / kFillBytesPerS;
  const uint64_t grown_bytes = (total - std::min(total, last_total_)) * kMmuPageBytes;
  const bool is_quiet = hands_at_work_ == 0 && grown_bytes < room_bytes / 64;
  return std::clamp(is_quiet ? std::min(last_wait_ns * 2, least * 4) : least, kWaitNsMin, kWaitNsMax);
}

// What is in memory. `others_` may be a little old.
uint64_t Evictor::measure_present() {
  if (auto all = pages_.present_pages())
    present_.store_relaxed(*all - std::min(*all, others_.load_relaxed()));
  return use().total();
}

// The same; counts where it is time to.
uint64_t Evictor::measure() {
  const uint64_t total = measure_present(), present = present_.load_relaxed();
  const bool has_changed = present > 2 * counted_ + kPartPages / 2 ||
                           counted_ > 2 * present + kPartPages / 2 || came() > came_by_count_ + kPartPages;
  const uint64_t now_ns = platform::monotonic_ns();
  if (now_ns < count_after_ns_ || (!has_changed && now_ns < count_after_ns_ + kSecondNs)) return total;
  count_all();
  return use().total();
}

// Calls look(from, scan) for one piece of the part after the other;
// false from it, or what cannot be scanned, ends that.
template <class Look>
void Evictor::look_over(const Mapping& part, Look look) const {
  FilePages::Run runs[kRunsMax];
  for (uintptr_t from = part.begin; from < part.end;) {
    auto scan = pages_.present(from, part.end, runs);
    if (!scan || scan->reached <= from || !look(from, *scan)) return;
    from = scan->reached;
  }
}

// Units begin where the part does.
void Evictor::add_to_units(const FilePages::Run& run, uintptr_t part_begin) {
  for (uintptr_t at = run.begin; at < run.end;) {
    const uint64_t unit = (at - part_begin) / MappingTable::kUnitBytes;
    const uintptr_t end = std::min(run.end, part_begin + (unit + 1) * MappingTable::kUnitBytes);
    units_[unit] = static_cast<uint16_t>(units_[unit] + (end - at) / kMmuPageBytes);
    at = end;
  }
}

// Also tells the table how the mappings are used.
void Evictor::count_all() {
  const uint64_t begin_ns = platform::monotonic_ns();
  uint64_t present = 0;
  for (uintptr_t at = 0;;) {
    auto part = table_.take(at, kPartBytesMax);
    if (!part) break;
    units_.assign((part->end - part->begin + MappingTable::kUnitBytes - 1) / MappingTable::kUnitBytes, 0);
    look_over(*part, [&](uintptr_t, const FilePages::Scan& scan) {
      for (const FilePages::Run& run : scan.runs) add_to_units(run, part->begin);
      present += scan.pages;
      return true;
    });
    table_.give_back(*part, units_);
    at = part->end;
  }
  if (auto all = pages_.present_pages()) others_.store_relaxed(*all - std::min(*all, present));
  present_.store_relaxed(present);
  counted_ = present;
  came_by_count_ = came();
  const uint64_t end_ns = platform::monotonic_ns();
  count_after_ns_ = end_ns + std::max((end_ns - begin_ns) * kCountShare, kCountNsMin);
}

// The front hand moves on by one part, and the back hand follows. False: there is nothing to go over.
bool Evictor::evict_part() {
  std::optional<Mapping> part = take_part();
  if (!part) return false;
  uint64_t pages = 0;
  if (!unmap(*part, &pages)) return true;
  telemetry::count(Counter::file_pages_unmapped, pages);
  for (const Unmapped& old : queue_and_take_oldest({*part, pages})) {
    drop(old.part);
    dropped_.fetch_add_relaxed(old.pages);
    telemetry::count(Counter::file_pages_dropped, old.pages);
  }
  return true;
}

std::optional<Mapping> Evictor::take_part() {
  const uint64_t bytes = part_bytes_.load_relaxed();
  std::lock_guard lock(mutex_);
  auto part = table_.take(hand_, bytes);
  if (!part) {
    rounds_.store_relaxed(rounds_.load_relaxed() + 1);
    part = table_.take(0, bytes);
  }
  if (part) hand_ = part->end;
  return part;
}

// What is queued beyond the distance of the hands is the caller's to
// drop. It counts as gone: others need not make up for it.
std::vector<Evictor::Unmapped> Evictor::queue_and_take_oldest(Unmapped newest) {
  std::vector<Unmapped> oldest;
  std::lock_guard lock(mutex_);
  uint64_t queued = unmapped_.load_relaxed() + newest.pages;
  queue_.push_back(std::move(newest));
  while (!queue_.empty() && queued > lag_pages_.load_relaxed()) {
    queued -= queue_.front().pages;
    oldest.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  unmapped_.store_relaxed(queued);
  return oldest;
}

// The part is given back. False: it cannot be unmapped, and the mapping has left the table.
bool Evictor::unmap(const Mapping& part, uint64_t* pages) {
  Status status;
  look_over(part, [&](uintptr_t, const FilePages::Scan& scan) {
    if (scan.runs.empty()) return true;
    const uintptr_t first = scan.runs.front().begin;
    status = platform::unmap_pages(first, scan.runs.back().end - first);
    *pages += scan.pages;
    return status.is_ok();
  });
  table_.give_back(part);
  if (!status) {
    table_.remove(part.begin, part.end);
    if (lost_ != nullptr) lost_(status.message());
    return false;
  }
  const uint64_t bytes = part.end - part.begin;
  const uint64_t wanted = bytes / kMmuPageBytes * kPartPages / std::max<uint64_t>(*pages, 1) * kMmuPageBytes;
  const uint64_t bounded = std::clamp(std::min(wanted, 2 * bytes), kPartBytesMin, kPartBytesMax);
  part_bytes_.store_relaxed(round_up(bounded, kFolioBytes));
  return true;
}

// All but what is present again: the kernel would look at each of
// those pages twice, and wait for all processors in between.
void Evictor::drop(const Mapping& part) {
  const auto give_up = [&](uintptr_t begin, uintptr_t end) {
    if (begin < end) platform::drop_cached(*part.file, part.offset_bytes + (begin - part.begin), end - begin);
  };
  look_over(part, [&](uintptr_t from, const FilePages::Scan& scan) {
    for (const FilePages::Run& run : scan.runs) {
      give_up(from, run.begin);
      from = run.end;
    }
    give_up(from, scan.reached);
    return true;
  });
}

}  // namespace spw::page_cache
