// What the runtime cannot go on without and the machine refuses, where there is nobody to be given a Status: in the
// middle of an eviction or of a fault, and in containers, which have no way to say so. One line that says what was
// refused and why, and exit code 74. A bug is a check (check.h); wherever there is a caller to tell it is a Status.
//
// Threads: any, with any lock held: nothing is allocated or unwound, and none of the program's own code runs.
#pragma once

#include <cerrno>
#include <string_view>

#include "base/status.h"

namespace spw {

// Returns to the first thread that wants to end the process; others wait here for the end that it brings.
void await_end_of_others();
// "spillway: cannot `what`: the words of `error`", and the end.
[[noreturn]] void cannot_go_on(std::string_view what, int error);
[[noreturn]] void cannot_go_on(const Status& status);

// `what`: a verb and its object, "give memory back".
inline void need(bool has, std::string_view what) {
  if (!has) [[unlikely]]
    cannot_go_on(what, errno);
}
inline void need(const Status& status) {
  if (!status) [[unlikely]]
    cannot_go_on(status);
}
inline void need_memory(const void* memory, std::string_view what) {
  if (memory == nullptr) [[unlikely]]
    cannot_go_on(what, ENOMEM);
}

}  // namespace spw
