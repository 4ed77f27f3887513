// The end of a process whose main thread has ended by pthread_exit(): with the last of the program's other threads.
// libc, which sees to that, counts the runtime's threads, too, and would wait for those for ever.
//
// Threads: the main thread. Limits: the end is noticed kLookNs late. What a forked child's only thread does, which is
// not the first of its parent, is left to libc.
#pragma once

namespace spw::libc {

// The calling thread is about to end by pthread_exit() or thrd_exit(): if it is the main thread, another one waits for
// the last of the program's, and then calls exit(0). Nothing where none can be started.
void watch_for_last_thread();

}  // namespace spw::libc
