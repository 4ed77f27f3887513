// Progress of one phase on standard error: a bar that moves on a terminal, a line at every tenth (or every
// few seconds of a phase that cannot be measured) elsewhere, nothing when off.
//
// Threads: any thread may call done(). A thread of the object's own prints. Lifetime: the phase; the
// destructor ends it.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

#include "common/report.h"

namespace examples {

class Progress {
 public:
  // total == 0: no measure of the work is known, only the time is shown.
  Progress(std::string phase, uint64_t total, bool on)
      : phase_(std::move(phase)), total_(total), terminal_(isatty(STDERR_FILENO) != 0), start_s_(now_s()) {
    if (on) printer_ = std::thread([this] { print_until_finished(); });
  }

  ~Progress() {
    if (!printer_.joinable()) return;
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      finished_ = true;
    }
    wake_.notify_one();
    printer_.join();
  }

  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void done(uint64_t units) { done_.fetch_add(units, std::memory_order_relaxed); }

 private:
  static constexpr int kBarCells = 40;
  static constexpr auto kRedraw = std::chrono::milliseconds(200);
  static constexpr double kLineEvery_s = 10;

  void print_until_finished() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!wake_.wait_for(lock, kRedraw, [this] { return finished_; })) {
      terminal_ ? draw_bar() : print_line();
    }
    const double seconds = now_s() - start_s_;
    std::fprintf(stderr, "%s%-12s done in %.1f s%s\n", terminal_ ? "\r" : "", phase_.c_str(), seconds,
                 terminal_ ? "\033[K" : "");
  }

  int percent() const {
    if (total_ == 0) return 0;
    const uint64_t done = done_.load(std::memory_order_relaxed);
    return static_cast<int>(done >= total_ ? 100 : done * 100 / total_);
  }

  void draw_bar() {
    const double seconds = now_s() - start_s_;
    if (total_ == 0) {
      std::fprintf(stderr, "\r%-12s %.1f s\033[K", phase_.c_str(), seconds);
    } else {
      const int filled = percent() * kBarCells / 100;
      std::fprintf(stderr, "\r%-12s [%s%s] %3d %%  %.1f s\033[K", phase_.c_str(),
                   std::string(filled, '#').c_str(), std::string(kBarCells - filled, '.').c_str(), percent(),
                   seconds);
    }
    std::fflush(stderr);
  }

  void print_line() {
    const double seconds = now_s() - start_s_;
    const int tenth = percent() / 10;
    if (tenth == last_tenth_ && seconds - last_line_s_ < kLineEvery_s) return;
    last_tenth_ = tenth;
    last_line_s_ = seconds;
    if (total_ == 0) {
      std::fprintf(stderr, "%-12s %.0f s\n", phase_.c_str(), seconds);
    } else {
      std::fprintf(stderr, "%-12s %3d %%  %.1f s\n", phase_.c_str(), percent(), seconds);
    }
  }

  const std::string phase_;
  const uint64_t total_;
  const bool terminal_;
  const double start_s_;
  std::atomic<uint64_t> done_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool finished_ = false;
  int last_tenth_ = 0;
  double last_line_s_ = 0;
  std::thread printer_;
};

}  // namespace examples
