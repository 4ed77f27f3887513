#include "base/need.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

#include "base/atomic.h"
#include "base/exit_status.h"

namespace spw {

namespace {

iovec part(std::string_view text) { return {const_cast<char*>(text.data()), text.size()}; }

// Not by libc's writev(), which the runtime may have taken over: what it needs may be what has failed.
[[noreturn]] void end_with(const iovec* parts, int count) {
  await_end_of_others();
  [[maybe_unused]] const auto written = ::syscall(SYS_writev, STDERR_FILENO, parts, count);
  ::_exit(kExitFailure);
}

}  // namespace

// By its system call where the end itself, which writes the program's files, comes to such an end.
void await_end_of_others() {
  static Atomic<pid_t> ends_it{0};
  const auto here = static_cast<pid_t>(::syscall(SYS_gettid));
  pid_t nobody = 0;
  if (ends_it.cas_strong_acq_rel(nobody, here)) return;
  if (nobody == here) ::syscall(SYS_exit_group, kExitFailure);
  for (;;) ::pause();
}

void cannot_go_on(std::string_view what, int error) {
  char buffer[128];
  const iovec parts[] = {part("spillway: cannot "), part(what), part(": "),
                         part(::strerror_r(error, buffer, sizeof buffer)), part("\n")};
  end_with(parts, 5);
}

// It has words of its own, and those may take memory; where there is none they are not wanted.
void cannot_go_on(const Status& status) {
  const std::string message = status.message();
  const iovec parts[] = {part("spillway: "), part(message), part("\n")};
  end_with(parts, 3);
}

}  // namespace spw
