#include "files/flusher.h"

#include <algorithm>
#include <chrono>

#include "files/buffered_file.h"
#include "platform/time.h"

namespace spw::files {

Status Flusher::start() {
  if (options_.by == FlushOptions::By::kDirect && options_.after_ns == 0) return {};
  auto thread = platform::Thread::start([this] { run(); });
  if (!thread) return thread.status();
  thread_ = std::move(*thread);
  return {};
}

void Flusher::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool Flusher::is_direct() {
  if (options_.by != FlushOptions::By::kAuto) return options_.by == FlushOptions::By::kDirect;
  const auto figures = [&] {
    return FlushChoice::Figures{telemetry::total(telemetry::read_totals(), telemetry::Counter::file_writes),
                                dirty_blocks_.load_relaxed()};
  };
  if (choice_.look(platform::monotonic_ns(), figures)) telemetry::count(telemetry::Counter::flush_changes);
  return choice_.way() == FlushChoice::Way::kDirect;
}

void Flusher::relieve(BufferedFile& file) {
  if (is_direct()) {
    if (file.dirty_blocks() >= kFlushTurnBlocks)
      (void)file.flush_some(kFlushTurnBlocks, false);
    else if (small_writes_.fetch_add_relaxed(1) % kSmallWritesEach == 0)
      (void)flush_one_of_all(false);
    return;
  }
  if (is_wanted_.load_relaxed() || is_wanted_.exchange_acq_rel(true)) return;
  std::lock_guard lock(mutex_);  // it looks at the wish, and sleeps, under this lock
  wake_.notify_all();
}

// The one with the most dirty blocks that nobody flushes. False: there is none.
bool Flusher::flush_one_of_all(bool waits) {
  std::vector<std::pair<uint64_t, std::shared_ptr<BufferedFile>>>
      files;  // the counts change while they are sorted
  for (auto& file : list_())
    if (const uint64_t dirty = file->dirty_blocks(); dirty > 0) files.emplace_back(dirty, std::move(file));
  std::ranges::sort(files, std::ranges::greater(), [](const auto& one) { return one.first; });
  return std::ranges::any_of(
      files, [&](const auto& one) { return one.second->flush_some(kFlushTurnBlocks, waits); });
}

// What cannot be written stays dirty: whoever syncs the file is told.
void Flusher::flush_old(uint64_t now_ns) {
  for (const auto& file : list_()) {
    const uint64_t since_ns = file->dirty_since_ns();
    if (since_ns != 0 && now_ns - std::min(now_ns, since_ns) >= options_.after_ns) (void)file->flush();
  }
}

void Flusher::run() {
  const uint64_t period_ns =
      options_.after_ns == 0 ? 1'000'000'000 : std::min<uint64_t>(options_.after_ns / 2, 1'000'000'000);
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::nanoseconds(period_ns),
                     [&] { return stopping_ || is_wanted_.load_relaxed(); });
      if (stopping_) return;
    }
    if (options_.by != FlushOptions::By::kDirect) {
      while (dirty_blocks_.load_relaxed() > dirty_max_ && !is_direct() && flush_one_of_all(true)) {
      }
      is_wanted_.store_release(false);
    }
    if (options_.after_ns != 0) flush_old(platform::monotonic_ns());
  }
}

}  // namespace spw::files
