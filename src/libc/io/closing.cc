#include "libc/io/closing.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>

#include "libc/io/descriptors.h"
#include "libc/real.h"
#include "platform/own_descriptors.h"
#include "platform/record_locks.h"

namespace spw::libc {

namespace {

bool is_kept(int fd) { return platform::is_own_descriptor(fd) && !InRuntime::here(); }

// Calls close(first, last) for each run of descriptors in [first, last] among which none is our own, until it fails.
template <class Close>
int between_own(unsigned first, unsigned last, Close close) {
  for (;;) {
    const int own = InRuntime::here() ? -1 : platform::next_own_descriptor(first);
    const bool is_last = own < 0 || static_cast<unsigned>(own) > last;
    const unsigned end =
        is_last ? last : static_cast<unsigned>(own);  // one behind, unless it is the last run
    if (is_last || first < end)
      if (const int result = close(first, is_last ? end : end - 1); result != 0) return result;
    if (is_last || end == last) return 0;
    first = end + 1;
  }
}

// For a kernel before 5.9, which has no close_range().
int close_one_by_one(unsigned first, unsigned last) {
  if (last >= INT_MAX) {
    files_or_real().closefrom(static_cast<int>(first));
    return 0;
  }
  const int saved_errno = errno;
  for (unsigned fd = first; fd <= last; ++fd) files_or_real().close(static_cast<int>(fd));
  errno = saved_errno;
  return 0;
}

}  // namespace

int close_fd(int fd) {
  if (is_kept(fd)) return static_cast<int>(fail(EBADF));
  return files_or_real().close(fd);
}

int close_fds(unsigned first, unsigned last, int flags) {
  if (first > last) return files_or_real().close_range(first, last, flags);
  return between_own(first, last, [flags](unsigned from, unsigned to) {
    return files_or_real().close_range(from, to, flags);
  });
}

void close_fds_from(int first) {
  between_own(static_cast<unsigned>(std::max(first, 0)), UINT_MAX, [](unsigned from, unsigned to) {
    const int saved_errno = errno;
    if (to < INT_MAX && files_or_real().close_range(from, to, 0) == 0) return 0;
    errno = saved_errno;
    return close_one_by_one(from, to);
  });
}

namespace {
// One that is merely kept open for the program's locks (platform/record_locks.h) is not in the way.
bool is_in_the_way(int fd, int to) {
  if (fd == to || !is_kept(to)) return false;
  platform::give_up_kept(to);
  return is_kept(to);
}
}  // namespace

int replace_fd(int fd, int to) {
  if (is_in_the_way(fd, to)) return static_cast<int>(fail(EBUSY));
  return files_or_real().dup2(fd, to);
}

int replace_fd(int fd, int to, int flags) {
  if (is_in_the_way(fd, to)) return static_cast<int>(fail(EBUSY));
  return files_or_real().dup3(fd, to, flags);
}

}  // namespace spw::libc
