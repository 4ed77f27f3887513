// One member of a striped store with a queue and a thread that serves it, for all queues of the striped store: it
// submits what they hand over and tells each part's owner when the part is done.
//
// Threads: submit() any; the store's own functions any. Lifetime: it is
// destroyed, and rests, with no part under way; that joins its thread.
// Limits: kMemberDepth parts at the member's queue at a time; the others wait.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/atomic.h"
#include "platform/thread.h"
#include "store/store.h"

namespace spw::store {

inline constexpr size_t kMemberDepth = 128;

// A request to one member, and what to do when it is over.
struct StripePart {
  Request request;
  uint64_t member = 0;
  uint64_t begun_ns = 0;  // for who keeps times
  // Called once, in the member's thread; `error` as a completion's. The part is gone afterwards.
  void (*over)(StripePart& part, int error) = nullptr;
  void* owner = nullptr;
};

class StripeMember {
 public:
  static Result<std::unique_ptr<StripeMember>> start(std::unique_ptr<Store> store);
  ~StripeMember();

  // Where its thread has to be started and cannot be, the part is over with that error when this returns.
  void submit(std::unique_ptr<StripePart> part);
  // Without thread and queue for a while, in which nothing is submitted.
  void rest();
  Status go_on();
  // In a forked child, by the only thread there is, as Store's: its parent's thread is not there, and what that was to
  // do is left as it lies. wake_up() or else the next part starts another one.
  void in_child();
  Status wake_up();

  Store& store() { return *store_; }
  const Store& store() const { return *store_; }
  // A request to it has failed.
  void note_failure() { failed_.store_relaxed(true); }
  bool has_failed() const { return failed_.load_relaxed(); }

 private:
  StripeMember() = default;
  void work();
  bool take_inbox();
  void submit_waiting();
  bool reap();

  std::unique_ptr<Store> store_;
  std::unique_ptr<IoQueue> queue_;
  Atomic<bool> failed_{false};
  std::deque<std::unique_ptr<StripePart>> waiting_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<StripePart>> inbox_;  // under mutex_
  bool ending_ = false;                             // under mutex_
  platform::Thread thread_;                         // last: it uses all of the above
};

}  // namespace spw::store
