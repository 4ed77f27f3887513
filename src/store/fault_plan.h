// Faults on demand, so that tests can see every I/O fail once. A store that was given a plan asks it about each
// request; what the plan says happens below the store's retries and short-transfer handling, in every engine alike.
//
// A plan is a list of rules, written "read:5:EIO,write:3+:ENOSPC,short:2,read:1+:delay:500":
//
//     OP:N:ERRNO       the Nth request of OP fails with ERRNO, its retries too     OP: read write discard sync
//     OP:N:ERRNO:xK    only its first K attempts fail                              ERRNO: EIO ENOSPC EAGAIN EINTR …
//     OP:N:delay:US    the Nth request of OP takes at least US microseconds
//     OP:N:DAMAGE      the Nth request of OP (read, write) succeeds, and is wrong all the same (DAMAGE below)
//     short:N          the first attempt of the Nth transfer (reads and writes counted together) moves only half of its
//                      blocks; a transfer of a single block is never shortened
//     N+ instead of N  that request and all after it
//
// DAMAGE: flip (one bit is another), zeros (all is zero), torn (the second half is something else), lost (nothing was
// moved), elsewhere (it was the contents beside it, or they went there).
// Requests are counted from 1, per OP, in the order in which they are issued. A failed attempt touches nothing.
// Threads: any. Lifetime: longer than its stores.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/store.h"

namespace spw::store {

enum class Damage : uint8_t { kNone, kFlip, kZeros, kTorn, kLost, kElsewhere };

// What happens to one request.
struct Fault {
  int error = 0;
  unsigned failures_left = 0;  // attempts that still fail with `error`
  bool shorten = false;
  Damage damage = Damage::kNone;
  uint64_t delay_ns = 0;
};
// Does it to data on its way, but for what is a matter of where that goes (kLost, kElsewhere). `salt`: which bit.
void damage(Damage how, std::byte* data, uint64_t bytes, uint64_t salt);

class FaultPlan {
 public:
  FaultPlan() = default;  // no faults
  static Result<std::unique_ptr<FaultPlan>> parse(std::string_view spec);

  // Adds the rules of `spec` to those there are; the counts go on.
  Status add(std::string_view spec);
  // Forgets all rules: the disk has been mended.
  void clear();
  // The number of requests of `op` so far.
  uint64_t requests(Op op);

  // Counts a request and says what happens to it; for stores.
  Fault next(Op op);

 private:
  struct Rule {
    Op op = Op::kRead;
    bool any_transfer = false;  // counts reads and writes together
    uint64_t first = 0;
    bool and_all_after = false;
    Fault fault;
  };
  static Result<Rule> parse_rule(std::string_view text);

  std::mutex mutex_;
  std::vector<Rule> rules_;
  std::array<uint64_t, 4> requests_{};  // by Op
};

}  // namespace spw::store
