#include "platform/page_lifter.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/need.h"
#include "base/units.h"
#include "platform/raw_calls.h"

namespace spw::platform {

namespace {

// By prctl(PR_SET_MEMORY_MERGE), which is inherited.
bool may_be_merged() {
  constexpr int kGetMemoryMerge = 68;  // PR_GET_MEMORY_MERGE, since Linux 6.4
  return ::syscall(SYS_prctl, kGetMemoryMerge, 0l, 0l, 0l, 0l) > 0;
}

// A list that cannot be read whole may have one.
bool names_zram(const File& swaps) {
  char text[4096];
  const ssize_t bytes = raw::pread(swaps.fd(), text, sizeof text, 0);
  if (bytes < 0 || static_cast<size_t>(bytes) == sizeof text) return true;
  return std::string_view(text, static_cast<size_t>(bytes)).find("zram") != std::string_view::npos;
}

// Since this was asked last.
bool has_changed(const File& swaps) {
  pollfd waits{swaps.fd(), POLLPRI, 0};
  return ::syscall(SYS_poll, &waits, 1ul, 0) != 0;
}

}  // namespace

PageLifter::PageLifter(const RangeReleaser& releaser) : releaser_(releaser) {
  if (!releaser.is_vectored() || may_be_merged()) return;
  auto swaps = open_file("/proc/swaps", O_RDONLY);
  if (swaps) {
    swaps_ = std::move(*swaps);
    (void)has_changed(swaps_);
  }
  // A kernel without swap has no list.
  is_able_.store_relaxed(swaps ? !names_zram(swaps_) : swaps.status().error() == ENOENT);
}

// Each of those that lift at the same time takes another pipe, as long as there are enough.
bool PageLifter::lift(std::span<const iovec> pages, std::span<const iovec> to) {
  if (swaps_.is_open() && has_changed(swaps_) && names_zram(swaps_)) is_able_.store_relaxed(false);
  if (!is_able() || pages.size() > kPagesMax) return false;
  const uint32_t first = lifting_.fetch_add_relaxed(1);
  Lifted lifted = Lifted::kWithoutPipe;
  for (uint32_t i = 0; i < kPipes && lifted == Lifted::kWithoutPipe; ++i) {
    Pipe& pipe = pipes_[(first + i) % kPipes];
    std::lock_guard lock(pipe.mutex);
    lifted = lift_through(pipe, pages, to);
  }
  lifting_.fetch_sub_relaxed(1);
  if (lifted == Lifted::kWithoutPipe) is_able_.store_relaxed(false);
  return lifted == Lifted::kYes;
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

PageLifter::Lifted PageLifter::lift_through(Pipe& pipe, std::span<const iovec> pages,
                                            std::span<const iovec> to) const {
  if (!open(pipe)) return Lifted::kWithoutPipe;
  const auto bytes = static_cast<long>(pages.size() * kMmuPageBytes);
  if (::syscall(SYS_vmsplice, pipe.in.fd(), pages.data(), pages.size(), 0u) != bytes) {
    pipe.close();  // with what it has taken, which is where it was
    return Lifted::kNo;
  }
  releaser_.release(pages);
  // All of it is there.
  long got;
  do {
    got = ::syscall(SYS_readv, pipe.out.fd(), to.data(), to.size());
  } while (got < 0 && errno == EINTR);
  need(got == bytes, "read what has left its address from a pipe");
  return Lifted::kYes;
}

}  // namespace spw::platform
