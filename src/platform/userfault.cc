#include "platform/userfault.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/need.h"
#include "base/units.h"
#include "platform/memory.h"
#include "platform/raw_calls.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
#ifndef UFFDIO_MOVE
#define UFFDIO_MOVE _IOWR(UFFDIO, 0x05, struct uffdio_move)
struct uffdio_move {
  __u64 dst;
  __u64 src;
  __u64 len;
  __u64 mode;
  __s64 move;
};
#endif

namespace spw::platform {

namespace {

uint64_t features(FaultDelivery delivery) {
  return UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_THREAD_ID |
         (delivery == FaultDelivery::kSignal ? uint64_t{UFFD_FEATURE_SIGBUS} : 0);
}

constexpr uint64_t kFeatureMove = 1 << 16;

constexpr size_t kEventsMax = 64;
constexpr size_t kRangesMax = 512;  // of one process_madvise; the kernel's limit is 1024

uint64_t number(const void* address) { return reinterpret_cast<uint64_t>(address); }

// The kernel takes ranges within one of its areas only, and those stay divided where access rights once differed.
template <class Call>
Status in_halves(uint64_t bytes, Call call) {
  const uint64_t half = round_up(bytes / 2, kMmuPageBytes);
  if (Status status = call(uint64_t{0}, half); !status) return status;
  return call(half, bytes - half);
}

// By the system call, or by the device where that is forbidden, as a container's profile may do.
int open_descriptor_with(int flags) {
  const int fd = static_cast<int>(::syscall(SYS_userfaultfd, flags));
  if (fd >= 0) return fd;
  const int error = errno;
  File device(::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
  const int made = device.is_open() ? ::ioctl(device.fd(), USERFAULTFD_IOC_NEW, flags) : -1;
  if (made < 0) errno = error;
  return made;
}

int open_descriptor(FaultScope* scope) {
  constexpr int kFlags = O_CLOEXEC | O_NONBLOCK;
  if (*scope == FaultScope::kAll)
    if (const int fd = open_descriptor_with(kFlags); fd >= 0) return fd;
  *scope = FaultScope::kUserOnly;
  return open_descriptor_with(kFlags | UFFD_USER_MODE_ONLY);
}

}  // namespace

Result<UserFault> UserFault::open(FaultScope scope_wanted, FaultDelivery delivery) {
  UserFault opened;
  opened.scope_ = delivery == FaultDelivery::kSignal ? FaultScope::kUserOnly : scope_wanted;
  opened.delivery_ = delivery;
  auto file = open_with(features(delivery) | kFeatureMove, &opened.scope_);
  opened.moves_ = static_cast<bool>(file);
  if (!file && file.status().error() == ENOTSUP) file = open_with(features(delivery), &opened.scope_);
  if (!file && file.status().error() == ENOTSUP)
    return Status::sentence(ENOTSUP,
                            "this kernel's userfaultfd cannot write-protect: Linux 5.7 or later is needed");
  if (!file) return file.status();
  opened.file_ = std::move(*file);
  return opened;
}

Result<File> UserFault::open_with(uint64_t features, FaultScope* scope) {
  File opened(open_descriptor(scope));
  if (!opened.is_open()) return Status(errno, "userfaultfd is not allowed here");
  uffdio_api api{UFFD_API, features, 0};
  if (::ioctl(opened.fd(), UFFDIO_API, &api) == 0) return opened;
  if (errno != EINVAL) return Status(errno, "cannot begin to use userfaultfd");
  return Status(ENOTSUP, "this kernel's userfaultfd lacks a feature that is needed");
}

Result<UserFault> UserFault::duplicate() const {
  UserFault same;
  same.file_ = File(::fcntl(fd(), F_DUPFD_CLOEXEC, 0));
  if (!same.file_.is_open()) return Status(errno, "cannot duplicate the descriptor of userfaultfd");
  same.scope_ = scope_;
  same.delivery_ = delivery_;
  same.moves_ = moves_;
  return same;
}

Status UserFault::register_range(void* address, uint64_t bytes) const {
  uffdio_register wish{{number(address), bytes}, UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP, 0};
  if (::ioctl(fd(), UFFDIO_REGISTER, &wish) != 0)
    return Status(errno, "cannot register " + format_size(bytes) + " with userfaultfd");
  return {};
}

Status UserFault::unregister_range(void* address, uint64_t bytes) const {
  uffdio_range range{number(address), bytes};
  if (::ioctl(fd(), UFFDIO_UNREGISTER, &range) != 0)
    return Status(errno, "cannot take " + format_size(bytes) + " back from userfaultfd");
  return {};
}

size_t UserFault::take_events(std::span<FaultEvent> events) const {
  uffd_msg messages[kEventsMax];
  for (;;) {
    const ssize_t got = ::read(fd(), messages, std::min(events.size(), kEventsMax) * sizeof(uffd_msg));
    // Who is told of any other error would ask again, for ever, while the threads that fault wait.
    need(got >= 0 || errno == EAGAIN || errno == EINTR, "take page faults from userfaultfd");
    if (got <= 0) return 0;
    size_t count = 0;
    for (size_t i = 0; i < static_cast<size_t>(got) / sizeof(uffd_msg); ++i) {
      if (messages[i].event != UFFD_EVENT_PAGEFAULT) continue;
      const auto& fault = messages[i].arg.pagefault;
      events[count++] = {round_down(fault.address, kMmuPageBytes), fault.feat.ptid,
                         (fault.flags & UFFD_PAGEFAULT_FLAG_WRITE) != 0,
                         (fault.flags & UFFD_PAGEFAULT_FLAG_WP) != 0};
    }
    if (count > 0) return count;
  }
}

size_t UserFault::wait_events(std::span<FaultEvent> events, int wake_fd) const {
  for (;;) {
    if (const size_t count = take_events(events)) return count;
    pollfd waits[2] = {{fd(), POLLIN, 0}, {wake_fd, POLLIN, 0}};
    if (::poll(waits, 2, -1) > 0 && waits[1].revents != 0) return 0;
  }
}

Status UserFault::copy(void* address, const void* source, uint64_t bytes, bool is_protected) const {
  // Nobody sleeps at a page whose faults are signals.
  const uint64_t mode = (is_protected ? uint64_t{UFFDIO_COPY_MODE_WP} : 0) |
                        (delivery_ == FaultDelivery::kSignal ? uint64_t{UFFDIO_COPY_MODE_DONTWAKE} : 0);
  uint64_t done = 0;
  while (done < bytes) {
    uffdio_copy wish{number(address) + done, number(source) + done, bytes - done, mode, 0};
    if (::ioctl(fd(), UFFDIO_COPY, &wish) == 0) return {};
    if (wish.copy > 0) done += static_cast<uint64_t>(wish.copy);
    if (errno == ENOENT && bytes - done > kMmuPageBytes)
      return in_halves(bytes - done, [&](uint64_t from, uint64_t length) {
        return copy(static_cast<std::byte*>(address) + done + from,
                    static_cast<const std::byte*>(source) + done + from, length, is_protected);
      });
    if (errno != EAGAIN && errno != EINTR) return Status(errno, "cannot put a block in its place");
  }
  return {};
}

Status UserFault::write_protect(void* address, uint64_t bytes, bool is_protected) const {
  // To protect wakes nobody anyhow; together with WP the kernel refuses the wish not to.
  const bool wakes = is_protected || delivery_ == FaultDelivery::kEvents;
  uffdio_writeprotect wish{{number(address), bytes},
                           (is_protected ? uint64_t{UFFDIO_WRITEPROTECT_MODE_WP} : 0) |
                               (wakes ? 0 : uint64_t{UFFDIO_WRITEPROTECT_MODE_DONTWAKE})};
  while (::ioctl(fd(), UFFDIO_WRITEPROTECT, &wish) != 0) {
    if (errno == ENOENT && bytes > kMmuPageBytes)
      return in_halves(bytes, [&](uint64_t from, uint64_t length) {
        return write_protect(static_cast<std::byte*>(address) + from, length, is_protected);
      });
    if (errno != EAGAIN && errno != EINTR) return Status(errno, "cannot change a block's protection");
  }
  return {};
}

void UserFault::wake(void* address, uint64_t bytes) const {
  if (delivery_ == FaultDelivery::kSignal) return;
  uffdio_range range{number(address), bytes};
  (void)::ioctl(fd(), UFFDIO_WAKE, &range);
}

Status UserFault::move(void* to, void* from, uint64_t bytes) const {
  uffdio_move wish{number(to), number(from), bytes, 0, 0};
  for (uint64_t done = 0; ::ioctl(fd(), UFFDIO_MOVE, &wish) != 0;) {
    if (wish.move > 0) done += static_cast<uint64_t>(wish.move);
    if (errno != EAGAIN && errno != EINTR) return Status(errno, "cannot move memory to another address");
    wish = {number(to) + done, number(from) + done, bytes - done, 0, 0};
  }
  return {};
}

RangeReleaser::RangeReleaser(Calls calls) {
  if (calls == Calls::kOneByOne) return;
  process_ = File(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  // Dropping a process's own pages this way came with Linux 6.13; asked of a page of our own.
  if (!process_.is_open()) return;
  auto page = map_anonymous(kMmuPageBytes);
  if (!page) return;
  iovec probe{page->data(), kMmuPageBytes};
  vectored_ = ::syscall(SYS_process_madvise, process_.fd(), &probe, 1ul, MADV_DONTNEED, 0u) ==
              static_cast<long>(kMmuPageBytes);
}

iovec take_adjoining(std::span<const iovec>* ranges) {
  iovec whole{ranges->front().iov_base, 0};
  auto* const begin = static_cast<std::byte*>(whole.iov_base);
  while (!ranges->empty() && ranges->front().iov_base == begin + whole.iov_len) {
    whole.iov_len += ranges->front().iov_len;
    *ranges = ranges->subspan(1);
  }
  return whole;
}

void RangeReleaser::release(std::span<const iovec> ranges) const {
  iovec merged[kRangesMax];
  while (!ranges.empty()) {
    size_t count = 0;
    uint64_t bytes = 0;
    while (count < kRangesMax && !ranges.empty()) {
      merged[count] = take_adjoining(&ranges);
      bytes += merged[count++].iov_len;
    }
    if (vectored_ && count > 1 &&
        ::syscall(SYS_process_madvise, process_.fd(), merged, count, MADV_DONTNEED, 0u) ==
            static_cast<long>(bytes))
      continue;
    // One by one; doing some of them twice is harmless, since nobody may install anything there meanwhile.
    for (size_t i = 0; i < count; ++i)
      need(raw::madvise(merged[i].iov_base, merged[i].iov_len, MADV_DONTNEED) == 0,
           "give the memory of evicted blocks back");
  }
}

}  // namespace spw::platform
