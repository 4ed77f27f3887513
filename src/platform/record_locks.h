// Record locks (fcntl with F_SETLK, lockf) belong to a process and a file: a close of any descriptor of the file gives
// them all up, whoever had opened it. So what the runtime has open of a program's file stays open while the program has
// such locks on it.
//
// Threads: any. Async-signal-safe. errno is kept. A forked child has none of its parent's locks, and closes what its
// parent kept open.
// Limits: kKeptOpenMax descriptors that are kept open; those beyond are closed. Locks of other processes keep one open,
// too.
#pragma once

namespace spw::platform {

inline constexpr int kKeptOpenMax = 256;

// The program has got a record lock of some file.
void note_record_lock();
// Closes a descriptor of the runtime's: now, or after its file has no such lock any more.
void close_unlocked(int fd);
// The program puts something else in the place of the number: if it is merely kept, it is not the runtime's any more.
void give_up_kept(int fd);
void record_locks_in_child();

}  // namespace spw::platform
