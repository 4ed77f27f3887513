// Forked children that go on: when what they need beside their memory is made, and by whom.
//
// A child whose memory faults has a thread from its first instruction on, which makes everything anew
// (Runtime::make_anew) as soon as somebody waits for it, or kWithoutAskingNs later, since what the child has of its
// parent's memory counts against a cap: a child that only executes something else is gone by then. Any other child
// has that thread started by whoever first waits for it. So nothing is made in a signal handler, on whose stack, and
// under whose interrupted locks, nobody knows what can be.
// Threads: any. hold_children() and let_children_go() around a fork: nothing is made between the two.
#pragma once

#include <cstdint>

namespace spw::process {

class Runtime;

inline constexpr uint64_t kWithoutAskingNs = 50'000'000;

void hold_children();
void let_children_go();
// In the child, in place of let_children_go(), by the only thread there is. `made`: called by that thread when all is
// there, before anybody goes on; a fork may begin meanwhile.
void child_begins(Runtime& runtime, bool starts_at_once, void (*made)(Runtime&));
// Returns when all is there; at once in a process that is no such child. One that cannot go on ends.
void await_parts_of_child();

}  // namespace spw::process
