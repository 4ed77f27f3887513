// Results on their way from the threads that do steps to the queue's thread, with a sleep for who waits for them.
//
// Threads: any, for everything. Limits: `depth` results.
#pragma once

#include <condition_variable>
#include <mutex>
#include <span>
#include <vector>

#include "store/engine/engine.h"

namespace spw::store {

class Mailbox {
 public:
  // `sleeper`: what to wake as well when something comes; it outlives the mailbox. nullptr: nothing.
  explicit Mailbox(size_t depth, IoEngine* sleeper = nullptr);
  void put(RawResult result) { put(std::span(&result, 1)); }
  void put(std::span<const RawResult> results);
  bool is_empty();
  size_t take(std::span<RawResult> out);
  // As IoQueue's.
  void wait(uint64_t timeout_ns);
  void wake();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  IoEngine* sleeper_;
  std::vector<RawResult> results_;
  bool woken_ = false;
};

}  // namespace spw::store
