// The access rights that the program has given to pages of managed space, where those of the kernel say something else.
//
// Threads: any, in the runtime (what is allocated here must not be managed); any() without a lock, so that who has
// changed nothing pays nothing. Errors: none.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/atomic.h"
#include "base/interval_map.h"
#include "base/status.h"

namespace spw::access {

class ProgramRights {
 public:
  static constexpr int kUsual = 3;  // PROT_READ | PROT_WRITE

  // `rights`: PROT_*, of [begin, end).
  void set(uintptr_t begin, uintptr_t end, int rights);
  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }
  // Those of `other`.
  void copy(const ProgramRights& other);
  bool any() const { return any_.load_acquire(); }
  int at(uintptr_t address) const;
  // `*end` on return: how far they are the same, at most what it was.
  int at(uintptr_t begin, uintptr_t* end) const;
  bool allow(uintptr_t address, bool is_store) const;
  // Whether all of [begin, end) may be read: sees what was recorded before others fenced and looked at what this thread
  // has stored.
  bool allow_reads(uintptr_t begin, uintptr_t end) const;
  // Gives the parts of [begin, end) that do not have the usual rights theirs, but for those that `most` has not.
  Status give(uintptr_t begin, uintptr_t end, int most) const;
  // Calls visit(begin, end, rights) for the parts of [begin, end), in order, until it returns false: false then.
  template <class Visit>
  bool for_each(uintptr_t begin, uintptr_t end, Visit visit) const;

 private:
  mutable std::mutex mutex_;
  IntervalMap<int> rights_{kUsual};
  Atomic<bool> any_{false};
};

template <class Visit>
bool ProgramRights::for_each(uintptr_t begin, uintptr_t end, Visit visit) const {
  std::lock_guard lock(mutex_);
  return rights_.for_each(begin, end, visit);
}

}  // namespace spw::access
