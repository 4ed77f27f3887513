// What the connections of one NBD store share: the server's address,
// what its export is like, and whether the store is lost.
//
// A connection that breaks may be made again only while nothing can have been lost with the server: the export is
// read-only, or every write that it acknowledged has been flushed since. Else the store is lost for good: a server that
// comes back without some of the writes would be silent about it.
//
// Invariants: flushed <= acknowledged;  loss() never becomes 0 again.
// Threads: any. Lifetime: outlives the connections.
#pragma once

#include <mutex>

#include "base/atomic.h"
#include "store/nbd/nbd_handle.h"

namespace spw::store {

class NbdLink {
 public:
  NbdLink(const Libnbd& lib, NbdAddress address, const NbdExport& facts)
      : lib_(lib), address_(std::move(address)), facts_(facts) {}

  const Libnbd& lib() const { return lib_; }
  const NbdAddress& address() const { return address_; }
  const NbdExport& facts() const { return facts_; }
  uint64_t timeout_ns() const { return address_.timeout_seconds * 1'000'000'000; }

  // The server has acknowledged a write or zeroing.
  void acknowledge() { acknowledged_.fetch_add_acq_rel(1); }
  uint64_t acknowledged() const { return acknowledged_.load_acquire(); }
  // A flush has succeeded that was sent when acknowledged() was `upto`.
  void note_flushed(uint64_t upto);
  bool may_connect_again() const;

  // The first loss counts. `error`: what requests fail with from now on.
  void lose(int error, const std::string& why);
  // 0 while the store is not lost.
  int loss() const { return loss_.load_acquire(); }
  // Why it was lost and what to do; "" while it is not.
  std::string loss_text() const;

 private:
  const Libnbd lib_;
  const NbdAddress address_;
  const NbdExport facts_;
  Atomic<uint64_t> acknowledged_{0};
  Atomic<uint64_t> flushed_{0};
  Atomic<int> loss_{0};
  mutable std::mutex mutex_;
  std::string why_lost_;  // under mutex_
};

}  // namespace spw::store
