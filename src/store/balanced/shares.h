// What share of the chunks each member of a balanced store is to get: by how fast it answers.
//
// Each read and write that ends well gives a ratio: the time it took over what requests of the same kind and about the
// same size take on all members; at most kOutlierMax, since now and then a thread has to wait for a processor. A
// member's slowness is the moving average of its ratios (kSamples of them), so that one that gets more reads, or larger
// requests, does not count as slow for that. Its weight is
//
//     1 / (slowness * (requests under way + 1))
//
// and each chunk goes to the member that is furthest behind the share that the weights say (smooth weighted round
// robin: all get their weight's part of a credit, and who has the most pays 1).
//
// Why that comes to shares of 1 / response time, at rest and under load: let x be a member's rate, n its requests under
// way, r its response time, so that n = x * r (Little). x ~ 1 / (r * (n + 1)) gives n * (n + 1) = the same for all, so
// n is equal and x ~ 1 / r. Where requests wait for one another, r is n times a device's own time s, and x ~ 1 / s:
// all devices are busy. A device that hangs ends no requests, but its n grows.
// Stability: more chunks make a member slower, so it gets fewer. Equal devices differ by the noise of their averages
// alone, and the credits even out what that has been.
// No member starves: a slowness counts as kRatioMax times the least one at most, and so each one gets chunks by which
// it can show that it is fast again.
//
// A full member, one without room for a whole chunk, gets none for kFullPauseNs, then it is tried again; one without
// any room is not asked for less meanwhile for kNoRoomPauseNs, so that who has to wait for room does not ask all the
// time.
//
// A member whose write failed for another reason than that gets none for kFailingPauseNs while another one has room.
//
// Threads: choose() and its kin one at a time (the store's lock); the rest any. What several note at the same time may
// be lost, which an average bears.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/atomic.h"
#include "store/store.h"
#include "store/striped/striped_name.h"

namespace spw::store {

inline bool is_no_room(int error) { return error == ENOSPC || error == EDQUOT; }
// Of a request that failed: the member's own. The caller's mistakes are not.
inline bool is_failure(int error) {
  return error != 0 && error != EINVAL && error != EFAULT && !is_no_room(error);
}

class Shares {
 public:
  static constexpr uint32_t kSamples = 64;
  static constexpr double kRatioMax = 64, kOutlierMax = 16;
  static constexpr uint64_t kFullPauseNs = 1'000'000'000, kNoRoomPauseNs = 10'000'000;
  static constexpr uint64_t kFailingPauseNs = 10'000'000'000;

  explicit Shares(size_t members) : count_(members) {}

  // A read or write of that many bytes has begun, and ended after `ns`; `ok`: well.
  void begun(size_t member) { members_[member].under_way.fetch_add_relaxed(1); }
  void ended(size_t member, Op op, uint64_t bytes, uint64_t ns, bool ok);

  // The member that gets the next chunk, of those in `eligible` (bit m: member m); nothing for none.
  std::optional<size_t> choose(uint32_t eligible);

  // It has no room for a whole chunk; `at_all`: nor for less.
  void note_full(size_t member, uint64_t now_ns, bool at_all) {
    members_[member].full_until_ns.store_relaxed(now_ns + kFullPauseNs);
    if (at_all) members_[member].no_room_until_ns.store_relaxed(now_ns + kNoRoomPauseNs);
  }
  bool is_full(size_t member, uint64_t now_ns) const {
    return members_[member].full_until_ns.load_relaxed() > now_ns;
  }
  bool has_no_room(size_t member, uint64_t now_ns) const {
    return members_[member].no_room_until_ns.load_relaxed() > now_ns;
  }
  void note_failing(size_t member, uint64_t now_ns) {
    members_[member].failing_until_ns.store_relaxed(now_ns + kFailingPauseNs);
  }
  void note_failed_write(size_t member, int error, uint64_t now_ns) {
    if (is_no_room(error)) note_full(member, now_ns, true);
    if (is_failure(error)) note_failing(member, now_ns);
  }
  bool is_failing(size_t member, uint64_t now_ns) const {
    return members_[member].failing_until_ns.load_relaxed() > now_ns;
  }
  // How long a read takes, on the average of the last ones. 0 before the first has ended.
  double read_ns(size_t member) const { return members_[member].read_ns.load_relaxed(); }
  // 0 before the first request has ended.
  double slowness(size_t member) const { return members_[member].slowness.load_relaxed(); }
  // What was under way is the parent's.
  void in_child();

 private:
  static constexpr unsigned kClasses = 10;  // of sizes: up to 4 KiB, 8 KiB ... 1 MiB, more
  struct Member {
    Atomic<double> slowness{0};
    Atomic<uint32_t> samples{0};
    Atomic<uint32_t> under_way{0};
    Atomic<uint64_t> full_until_ns{0};
    Atomic<uint64_t> no_room_until_ns{0};
    Atomic<uint64_t> failing_until_ns{0};
    Atomic<double> read_ns{0};
    double credit = 0;
  };
  Atomic<double>& typical(Op op, uint64_t bytes);

  const size_t count_;
  std::array<Member, kStripedMembersMax> members_;
  std::array<Atomic<double>, 2 * kClasses> typical_ns_{};  // of reads, then of writes
};

}  // namespace spw::store
