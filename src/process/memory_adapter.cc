#include "process/memory_adapter.h"

#include <algorithm>
#include <chrono>

#include "cache/client_thread.h"
#include "platform/machine.h"
#include "platform/memory.h"
#include "telemetry/counters.h"

namespace spw::process {

using telemetry::Counter;

double AdaptiveLimit::mean_change(uint64_t Sample::* field) const {
  if (samples_ < 2) return 0;
  return (static_cast<double>(history_[samples_ - 1].*field) - static_cast<double>(history_[0].*field)) /
         (samples_ - 1);
}

uint32_t AdaptiveLimit::bounded(double frames, uint32_t limit) const {
  const double least = static_cast<double>(frames_max_ / kLimitShareMin);
  const auto wanted = static_cast<uint32_t>(std::clamp(frames, least, static_cast<double>(frames_max_)));
  const uint32_t step = wanted > limit ? wanted - limit : limit - wanted;
  return step >= limit / kStepShare || wanted == frames_max_ ? wanted : limit;
}

uint32_t AdaptiveLimit::next(const Sample& sample, uint32_t limit) {
  if (samples_ == kHistory + 1) std::copy(history_ + 1, history_ + samples_--, history_);
  history_[samples_++] = sample;
  const double used = static_cast<double>(sample.used_frames);
  const double growth = std::max(mean_change(&Sample::used_frames), 0.0) * kHorizon;
  const double spare = (static_cast<double>(sample.available_bytes) - static_cast<double>(reserve_bytes_)) /
                       static_cast<double>(frame_bytes_);
  // Others take memory too: what is available falls by more than what this process uses of it.
  const double others = std::max(-mean_change(&Sample::available_bytes) / static_cast<double>(frame_bytes_) -
                                     std::max(mean_change(&Sample::used_frames), 0.0),
                                 0.0) *
                        kHorizon;
  if (spare - others < 0) return bounded(used + (spare - others), limit);
  if (growth > spare - others) return std::min(limit, bounded(used + spare - others, limit));
  const double free = static_cast<double>(limit) - used;
  const double demand = std::max(growth, mean_change(&Sample::filled_blocks) * kHorizon);
  // What is free was granted before, and is still among what is spare.
  const double wanted = std::min({demand - free, (spare - others) / 2, spare - others - free});
  return wanted > 0 ? bounded(static_cast<double>(limit) + wanted, limit) : limit;
}

namespace {

uint64_t memory_of_machine() {
  auto total = platform::memory_total_bytes();
  return std::min(total ? *total : UINT64_MAX, platform::cgroup_memory_limit_bytes().value_or(UINT64_MAX));
}

}  // namespace

uint64_t available_memory_bytes() {
  auto machine = platform::memory_available_bytes();
  return std::min(machine ? *machine : UINT64_MAX,
                  platform::cgroup_memory_available_bytes().value_or(UINT64_MAX));
}

uint64_t filled_blocks() {
  const telemetry::Totals totals = telemetry::read_totals();
  uint64_t sum = 0;
  for (const Counter counter : {Counter::fills, Counter::unit_fills, Counter::readahead_fills,
                                Counter::zero_fills, Counter::overwrites})
    sum += telemetry::total(totals, counter);
  return sum;
}

MemoryAdapter::MemoryAdapter(cache::SharedCache& cache, access::Engine& engine, uint64_t frame_bytes,
                             Readings readings)
    : cache_(cache),
      engine_(engine),
      frame_bytes_(frame_bytes),
      readings_(std::move(readings)),
      rule_(cache.frame_count(), frame_bytes, readings_.machine_bytes) {}

MemoryAdapter::Readings MemoryAdapter::Readings::of_machine() {
  const auto resident_bytes = []() -> std::optional<uint64_t> {
    auto own = platform::process_memory();
    if (!own) return std::nullopt;
    return own->resident_anonymous_bytes;
  };
  return {memory_of_machine(), &available_memory_bytes, resident_bytes, kPeriodNs};
}

Status MemoryAdapter::start() {
  auto thread = cache::start_client_thread(cache_, [this](cache::Client& client) { adapt(client); });
  if (!thread) return thread.status();
  thread_ = std::move(*thread);
  return {};
}

void MemoryAdapter::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

// While the kernel has the program's memory alone, what it holds counts.
uint64_t MemoryAdapter::used_frames() const {
  if (engine_.is_watching()) return cache_.used_frames();
  auto resident_bytes = readings_.resident_bytes();
  return resident_bytes ? *resident_bytes / frame_bytes_ : cache_.frame_limit();
}

void MemoryAdapter::adapt(cache::Client& client) {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::nanoseconds(readings_.period_ns), [this] { return stopping_; })) {
    lock.unlock();
    const uint32_t limit = cache_.frame_limit();
    const uint32_t next = rule_.next({used_frames(), filled_blocks(), readings_.available_bytes()}, limit);
    if (next != limit) {
      if (next < limit) engine_.watch();
      cache_.set_frame_limit(next);
      cache_.make_room(client, 0, 0);
      telemetry::count(Counter::limit_changes);
    }
    lock.lock();
  }
}

}  // namespace spw::process
