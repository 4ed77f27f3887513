// A thread of the runtime's own: it gets none of the program's signals, is inside the runtime from its first
// instruction (base/in_runtime.h), and one that cannot be started is a Status.
//
// Threads: a Thread object belongs to one thread at a time. Lifetime: the destructor joins.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "base/status.h"

namespace spw::platform {

class Thread {
 public:
  // Counts the calling thread among those of running() while it exists.
  class Running {
   public:
    Running();
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    const bool is_first_;  // of this thread's
  };

  Thread() = default;
  Thread(Thread&& other) noexcept : thread_(other.thread_), runs_(std::exchange(other.runs_, false)) {}
  Thread& operator=(Thread&& other) noexcept {
    std::swap(thread_, other.thread_);
    std::swap(runs_, other.runs_);
    return *this;
  }
  ~Thread() { join(); }

  // Starts a thread that runs `body`. EAGAIN when the kernel or a limit refuses one.
  static Result<Thread> start(std::function<void()> body);
  // Of the calling thread: once there is something for it to do, it runs before those that have run for longer than
  // `slice_ns` at a time. It gets no larger share of the processors. Linux 6.12; else nothing changes.
  static void prefer_short_slices(uint64_t slice_ns);
  // How many of this process there are, some of which may just have ended.
  static uint32_t running();
  // In a forked child, where there are none.
  static void in_child();
  // Waits for its end; nothing when there is none, or none any more.
  void join();

 private:
  pthread_t thread_{};
  bool runs_ = false;
};

}  // namespace spw::platform
