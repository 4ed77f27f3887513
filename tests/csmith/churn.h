// Has everything else evicted: a thread that walks through three times as much managed memory as the cap holds, for as long as the
// program runs. Only with CHURN in the environment; the program's output is the same.
#pragma once

#include <stdlib.h>

#include <atomic>
#include <thread>

namespace {

class Churn {
 public:
  Churn() {
    if (getenv("CHURN")) thread_ = std::thread([this] { walk(); });
  }
  ~Churn() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  // Returns when what was used last is no longer in memory.
  void wait_for_a_lap() const {
    if (!thread_.joinable()) return;
    for (const long end = laps_ + 2; laps_ < end;) std::this_thread::yield();
  }

 private:
  static constexpr size_t kBytes = size_t{24} << 20;

  void walk() {
    auto* bytes = static_cast<volatile char*>(malloc(kBytes));
    for (; !stop_; ++laps_)
      for (size_t i = 0; i < kBytes && !stop_; i += 4096) bytes[i] = static_cast<char>(bytes[i] + 1);
    free(const_cast<char*>(bytes));
  }

  std::atomic<bool> stop_{false};
  std::atomic<long> laps_{0};
  std::thread thread_;
};

Churn churn;

}  // namespace
