#include "platform/page_lifter.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/need.h"
#include "base/units.h"

namespace spw::platform {

bool may_be_merged() {
  constexpr int kGetMemoryMerge = 68;  // since Linux 6.4
  return ::syscall(SYS_prctl, kGetMemoryMerge, 0l, 0l, 0l, 0l) > 0;
}

// Any pipe that nobody uses, else the first one's turn.
bool PageLifter::lift(std::span<const iovec> pages, std::span<const iovec> to,
                      const RangeReleaser& releaser) {
  if (!releaser.is_vectored() || pages.size() > kPagesMax) return false;
  for (Pipe& pipe : pipes_) {
    const std::unique_lock lock(pipe.mutex, std::try_to_lock);
    if (lock) return lift_through(pipe, pages, to, releaser);
  }
  std::lock_guard lock(pipes_[0].mutex);
  return lift_through(pipes_[0], pages, to, releaser);
}

// Once: where it cannot be had now, or has failed, it most likely cannot later.
bool PageLifter::open(Pipe& pipe) {
  if (pipe.is_tried) return pipe.in.is_open();
  pipe.is_tried = true;
  int ends[2];
  if (::syscall(SYS_pipe2, ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  pipe.out = File::closed_on_exec(ends[0]);
  pipe.in = File::closed_on_exec(ends[1]);
  constexpr long kBytes = kPagesMax * kMmuPageBytes;
  if (::syscall(SYS_fcntl, pipe.in.fd(), F_SETPIPE_SZ, kBytes) >= kBytes) return true;
  pipe.close();
  return false;
}

bool PageLifter::lift_through(Pipe& pipe, std::span<const iovec> pages, std::span<const iovec> to,
                              const RangeReleaser& releaser) {
  if (!open(pipe)) return false;
  const auto bytes = static_cast<long>(pages.size() * kMmuPageBytes);
  if (::syscall(SYS_vmsplice, pipe.in.fd(), pages.data(), pages.size(), 0u) != bytes) {
    pipe.close();  // with what it has taken, which is where it was
    return false;
  }
  releaser.release(pages);
  // All of it is there.
  long got;
  do {
    got = ::syscall(SYS_readv, pipe.out.fd(), to.data(), to.size());
  } while (got < 0 && errno == EINTR);
  need(got == bytes, "read what has left its address from a pipe");
  return true;
}

}  // namespace spw::platform
