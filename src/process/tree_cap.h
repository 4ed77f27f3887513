// The cap of all processes below one `spillway run`: who of them may hold how much of it.
//
//   cap = free + sum of granted, over all members
//
// The ledger is a memory file that `spillway run` makes and every process below inherits, under the number that
// kTreeVariable names; without one a process makes its own, which its forked children share. A member has a slot in
// it, and a lock on the slot's byte (an open file description lock, which the kernel gives up however the process
// ends); who finds a slot without a lock takes back what was granted to it.
//
// A member begins with what is free, and with kLeastBytes that it owes where nothing is: `free` is negative then, and
// the others give. What a member holds is measured; it may have as many frames as the difference to what it is
// granted has room for. Each looks a few times a second (native_memory.h) and does what share_change() says: who
// needs more takes of what is free; while others lack, who needs less gives what he has too much; and where all need,
// those whose pages have been there longest give way, step by step, as one LRU list of all would have it
// (page_cache_share.h has the same rule for two). What is given is free once it is not held any more, so the sum
// keeps to the cap.
// The ledger also says what all of them have done, for the line at the end of the run: each notes its own in its slot,
// and who takes back the slot of one that has ended adds them up.
// Threads: one at a time of a process. Ordering: `free` and each `granted` are changed by atomic additions of one
// member's own, so that their sum is off by what is on its way only; the rest are hints.
// Errors: a machine without such locks, or a ledger that is full: the process has a cap of its own.
// Limits: kTreeProcessesMax members. A process that never manages memory is no member.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/atomic.h"
#include "base/status.h"
#include "platform/file.h"
#include "platform/memory.h"
#include "telemetry/closing_line.h"

namespace spw::process {

inline constexpr const char* kTreeVariable = "SPILLWAY_TREE";  // "FD:PROCESS", of who made it
inline constexpr unsigned kTreeProcessesMax = 512;

// What a member knows when it looks. Bytes, and ages in ns.
struct TreeMember {
  int64_t granted = 0;
  uint64_t held = 0;
  uint64_t age = 0;      // how long its pages stay: held / what it brings in a second
  bool is_full = false;  // its frames are in use
};
struct TreeOthers {
  uint64_t cap = 0;
  int64_t free = 0;
  unsigned members = 1;            // this one, too
  bool want = false;               // some other one lacks memory
  uint64_t youngest = UINT64_MAX;  // the least age of those
};
// By how much `granted` is to change.
int64_t share_change(const TreeMember& mine, const TreeOthers& others);

// What somebody who looks on sees of a process's part in its run. Hints, and nothing in it is believed: the ledger is
// memory of a program.
struct TreeShare {
  uint64_t run = 0;  // the ledger's number: equal for all processes of a run
  uint64_t cap_bytes = 0;
  int64_t free_bytes = 0;
  bool is_member = false;  // has managed memory; the rest is of members
  int64_t granted_bytes = 0;
  uint64_t held_bytes = 0;
  bool wants = false;  // lacks memory
};

class TreeCap {
 public:
  static constexpr int64_t kLeastBytes = int64_t{2} << 20;

  // For the program that is about to be started in this process, and all below.
  static Status make_for_children(uint64_t cap_bytes);
  // At the start of a process: the ledger that it inherited, if any, is not the program's to close.
  static void keep_inherited();

  // Of another process: by its descriptors, and by which slot it has locked. ENOENT: in no run, or another user's.
  static Result<TreeShare> share_of(uint64_t process);

  // Of the inherited ledger, or of one of its own.
  static Result<TreeCap> join(uint64_t cap_bytes);
  // A forked child's own membership, beside its parent's.
  Result<TreeCap> join_as_child() const;
  // In a forked child, before anything else.
  void forked();

  uint64_t cap_bytes() const;
  unsigned members() const { return members_; }
  // As of the last look, and nobody has joined since.
  bool is_alone() const;
  int64_t granted() const;
  int64_t free_bytes() const;
  uint64_t held_by_all() const;
  // Once for all members.
  bool is_first_to_tell();

  // What the members have done and needed, those that have ended, too; without a membership as well (look_on()).
  struct Account {
    telemetry::RunTotals totals;
    uint64_t resident_bytes = 0;  // of a member now; of all the most at one time
    uint64_t needs_bytes = 0;     // likewise: what it would hold if nothing had to leave memory
  };
  // A few times a second, and at its end. Totals since it began.
  void note(const Account& mine);
  Account account() const;
  // Of all members, as they last said.
  uint64_t resident_bytes() const;
  // Of the inherited ledger, for who is no member.
  static Result<TreeCap> look_on();
  // Whether this process is the one that `spillway run` became, or has no such process above it.
  static bool is_root();

  // Before the first look. What a forked child holds at its beginning is of what its parent held, which will give it.
  void begin(uint64_t held_bytes);
  // A few times a second. What is granted from now on; may be less than what is held.
  int64_t look(uint64_t held_bytes, uint64_t brought_bytes, bool is_full, uint64_t now_ns);

 private:
  struct Noted;
  struct Slot;
  struct Ledger;
  static const uint64_t kLedgerBytes;
  static Result<platform::File> make_ledger(uint64_t cap_bytes);
  static Result<platform::File> inherited_ledger();
  static Result<TreeCap> map_file(const platform::File& inherited);
  static Status read_ledger(const std::string& path, int slot, TreeShare& share);
  static Result<TreeCap> join_file(const platform::File& inherited);
  Status take_slot();
  void put_right();
  void take_back(Slot& slot);
  TreeOthers look_at_others();
  void change(int64_t bytes);
  Ledger& ledger() const { return *reinterpret_cast<Ledger*>(shared_.data()); }
  Slot& mine() const;

  platform::File file_;  // an open description of this process's own
  platform::Mapping shared_;
  unsigned slot_ = 0;
  unsigned members_ = 1;
  unsigned looks_ = 0;
  uint32_t joins_ = 0;   // of all, at the last look
  int64_t to_give_ = 0;  // once it is not held any more
  uint64_t last_brought_ = 0, last_ns_ = 0;
  double brought_a_second_ = 0;
};

}  // namespace spw::process
