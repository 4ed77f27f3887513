// A program that is started now and stays when this process ends, to do what cannot be done by a process that has
// ended: it may be killed at any moment.
//
// It is nobody's child that this process could wait for, has a session of its own (no terminal's signals), no
// descriptors of the program and no standard streams, and nothing that is preloaded here. As its descriptor
// kPredecessor it has this process, which it waits for by await_predecessor().
//
// Threads: any; all signals are blocked in the new program until await_predecessor(). Limits: Linux 5.9, else an error;
// what ends a whole container or control group ends it as well, so whatever it does somebody else has to be able to do
// later.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace spw::platform {

inline constexpr int kPredecessor = 3;

// `words`: of the command line, from the program's name on. EPERM: this process is who gets the children of others
// (the first of a container, or a subreaper), and would have to wait for it.
Status start_successor(const std::string& program, const std::vector<std::string>& words);

// In the new program: until the process that started it has ended, whatever is left of it to be waited for. False: it
// was not started so.
bool await_predecessor();

}  // namespace spw::platform
