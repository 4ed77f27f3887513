// What a run came to, and the line that says so at its end (telemetry/closing_line.h).
//
// Each process that has managed memory keeps an account of its own; where it is a member of a tree (tree_cap.h) it puts
// that into the ledger, now and then and at its end, and the root of the tree, which ends last as a rule, speaks for
// all. The root need not have managed memory itself (a shell, a build tool). Who ends later than the root, or has an
// account that was not yet put there when it was killed, is not in the line.
// Nothing is written where standard error is not what it was at the start: the program may have closed it and opened a
// file of its own under the number.
// Threads: seen() one at a time; at_end() once. Lifetime: the tree outlives it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/atomic.h"
#include "process/tree_cap.h"
#include "telemetry/closing_line.h"

namespace spw::process {

class Closing {
 public:
  // `tree`: nullptr where the process is no member of one.
  Closing(TreeCap* tree, uint64_t cap_bytes, uint64_t block_bytes);

  // The process holds, and would hold if nothing had to leave memory.
  void seen(uint64_t resident_bytes, uint64_t needs_bytes);
  // This process ends. `curve` as in telemetry::Facts, its first point this process's own reads.
  // `speaks`: it says so if it is the root.
  void at_end(const std::vector<telemetry::CurvePoint>& curve, bool speaks);
  bool has_spilled() const;

 private:
  telemetry::RunTotals totals() const;

  TreeCap* const tree_;
  const uint64_t cap_bytes_;
  const uint64_t block_bytes_;
  // A forked child's begin with what its parent had used.
  const uint64_t processor_started_ns_;
  Atomic<uint64_t> resident_most_{0}, needs_most_{0};
};

// At the start of the process.
void begin_closing();
// Whether it still has the standard error of its start.
bool has_standard_error();
// At the end of a process that never had managed memory: the line for those below it, if it is their root. Once; also
// where it ends by _exit(), as some shells do.
void tell_of_others();

}  // namespace spw::process
