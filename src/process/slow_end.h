// While a program's end takes long, since what it stored to files is still being written, a line that says so: on a
// terminal one that is kept up to date, elsewhere one now and then. Nothing where it is quick, or --quiet.
//
// Threads: one of its own, while it lives; nothing is said where that cannot be had. Limits: kPatienceNs.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "platform/thread.h"

namespace spw::process {

class SlowEnd {
 public:
  // Before the first line, and between two of them on a terminal and elsewhere.
  static constexpr uint64_t kPatienceNs = 2'000'000'000;
  static constexpr uint64_t kOnTerminalNs = 500'000'000, kElsewhereNs = 30'000'000'000;

  explicit SlowEnd(bool speaks, uint64_t patience_ns = kPatienceNs);
  ~SlowEnd();
  SlowEnd(const SlowEnd&) = delete;
  SlowEnd& operator=(const SlowEnd&) = delete;

 private:
  void keep_telling();

  const uint64_t patience_ns_, written_before_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_over_ = false;
  platform::Thread tells_;
};

}  // namespace spw::process
