// What becomes of a run one of whose forked children touches managed memory, which only its parent has: the child is
// refused, and with it the run ends (--on-refused-child=end), since who waits for such a child often waits for ever or
// starts another. What went wrong is said once, however many children are refused.
//
// Threads: any; refuse_child() is async-signal-safe but for the memory of its message. Lifetime: the process's.
#pragma once

#include "base/status.h"

namespace spw::process {

// In the process that has managed memory, as it prepares to fork: from now on its
// children, and theirs, can end it. Takes no memory of an allocator, whose locks
// may be held by now. Where it fails, children are refused and the run goes on.
void let_children_end_the_run();

// In a forked child that touched managed memory.
[[noreturn]] void refuse_child(const Status& why);

}  // namespace spw::process
