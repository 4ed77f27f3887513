#include "platform/wake_fd.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "base/check.h"
#include "platform/time.h"
#include "platform/uncancelled.h"

namespace spw::platform {

namespace {

int poll_for(std::span<pollfd> watched, uint64_t timeout_ns) {
  timespec timeout{static_cast<time_t>(timeout_ns / kNsPerSecond),
                   static_cast<long>(timeout_ns % kNsPerSecond)};
  return ::ppoll(watched.data(), watched.size(), timeout_ns == kNoTimeout ? nullptr : &timeout, nullptr);
}

}  // namespace

void wait_readable(std::span<const int> fds, uint64_t timeout_ns) {
  Uncancelled guard;
  pollfd watched[kWaitedMax];
  SPW_CHECK(fds.size() <= kWaitedMax);
  for (size_t i = 0; i < fds.size(); ++i) watched[i] = {fds[i], POLLIN, 0};
  (void)poll_for({watched, fds.size()}, timeout_ns);
}

Result<WakeFd> WakeFd::create() {
  int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return Status(errno, "cannot make an event descriptor");
  WakeFd made;
  made.event_ = File(fd);
  return made;
}

void WakeFd::wait(int fd, uint64_t timeout_ns) {
  Uncancelled guard;
  pollfd watched[2] = {{fd, POLLIN, 0}, {event_.fd(), POLLIN, 0}};
  const int ready = poll_for(watched, timeout_ns);
  if (ready > 0 && (watched[1].revents & POLLIN)) clear();
}

void WakeFd::wake() {
  Uncancelled guard;
  uint64_t one = 1;
  // EAGAIN: 2^64 - 2 wake-ups are waiting already, and one is enough.
  [[maybe_unused]] auto written = ::write(event_.fd(), &one, sizeof one);
}

void WakeFd::clear() {
  Uncancelled guard;
  uint64_t count;
  [[maybe_unused]] auto got = ::read(event_.fd(), &count, sizeof count);  // EAGAIN: nothing to take
}

}  // namespace spw::platform
