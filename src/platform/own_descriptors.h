// Descriptors of the runtime within a program that does not know of them. They lie behind the numbers that programs
// use (the next one that a program opens is what it would be natively, and a shell's `exec 3>file` replaces nothing
// of ours), and are known, so that calls that close whatever there is (a daemon's loop, closefrom) can leave them
// alone: a forked child whose memory could no longer be brought in would read zeros.
//
// Every platform::File takes its descriptor over by take_descriptor(). Before keep_own_descriptors(), and in tools,
// that changes nothing.
// Limits: kOwnDescriptorsMax, above which descriptors are not known. Where the process may have no more of them
// (RLIMIT_NOFILE), they stay where they were opened.
// Threads: any. A forked child has its parent's, and changes its own. Async-signal-safe. errno is kept.
#pragma once

namespace spw::platform {

inline constexpr int kOwnDescriptorsMax = 1 << 16;

// Those that are taken from now on.
void keep_own_descriptors();

bool is_own_descriptor(int fd);
// The lowest one from `from` on; -1 if there is none.
int next_own_descriptor(unsigned from);

// What `fd` has open, from now on under the number that is returned. A negative one is returned as it is.
int take_descriptor(int fd);
// The same of one that is known to be closed on exec.
int take_closed_on_exec(int fd);
// `fd` is one of the runtime's, under the number that it has.
void know_descriptor(int fd);
// It is not one of the runtime's any more; before it is closed.
void drop_descriptor(int fd);

}  // namespace spw::platform
