// futex(2) on words of which any may be managed (waits.h): std::atomic::wait()
// and what is built on it, and runtimes of other languages.
//
// Threads: any. Async-signal-safe as the call is. Errors: the call's, -1 and errno.
#pragma once

namespace spw::libc {

// The arguments of futex(2), the fourth and fifth as the command has it. They are changed on the way.
long call_futex(long (&given)[6]);

}  // namespace spw::libc
