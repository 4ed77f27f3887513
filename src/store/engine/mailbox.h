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
  explicit Mailbox(size_t depth);
  void put(RawResult result);
  size_t take(std::span<RawResult> out);
  // As IoQueue's.
  void wait(uint64_t timeout_ns);
  void wake();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RawResult> results_;
  bool woken_ = false;
};

}  // namespace spw::store
