#include "platform/record_locks.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "platform/own_descriptors.h"

namespace spw::platform {

namespace {

constexpr int kNone = -1, kPassedMax = 16;

constinit Atomic<bool> g_are_used{false};
// Fewer than that are in use, and each is its taker's alone. A number is stored as one more, so that 0 is none.
constinit Atomic<int> g_kept[kKeptOpenMax];

// Asked as by an open file of its own, whom locks of this process stand in the way of as well. Those of other processes
// look the same where several are there, so that any counts; those of open files (F_OFD_SETLK) do not, and are passed.
bool has_lock(int fd) {
  off_t from = 0;
  for (int passed = 0; passed < kPassedMax; ++passed) {
    struct flock wish{};
    wish.l_type = F_WRLCK;
    wish.l_whence = SEEK_SET;
    wish.l_start = from;
    if (::syscall(SYS_fcntl, fd, F_OFD_GETLK, &wish) != 0 || wish.l_type == F_UNLCK) return false;
    if (wish.l_pid != -1) return true;
    if (wish.l_len == 0) return false;
    from = wish.l_start + wish.l_len;
  }
  return false;
}

void close_now(int fd) {
  drop_descriptor(fd);
  ::syscall(SYS_close, fd);
}

bool keep(int fd) {
  for (Atomic<int>& place : g_kept) {
    int nobody = 0;
    if (place.load_relaxed() == 0 && place.cas_strong_acq_rel(nobody, fd + 1)) {
      know_descriptor(fd);
      return true;
    }
  }
  return false;
}

// Of those that were kept, what may be closed by now.
void look_again() {
  for (Atomic<int>& place : g_kept) {
    const int fd = place.load_relaxed() == 0 ? kNone : place.exchange_acq_rel(0) - 1;
    if (fd != kNone && (!has_lock(fd) || !keep(fd))) close_now(fd);
  }
}

}  // namespace

void note_record_lock() { g_are_used.store_relaxed(true); }

void close_unlocked(int fd) {
  if (!g_are_used.load_relaxed()) return close_now(fd);
  const int saved_errno = errno;
  look_again();
  if (!has_lock(fd) || !keep(fd)) close_now(fd);
  errno = saved_errno;
}

void give_up_kept(int fd) {
  for (Atomic<int>& place : g_kept) {
    int held = fd + 1;
    if (place.load_relaxed() == held && place.cas_strong_acq_rel(held, 0)) drop_descriptor(fd);
  }
}

void record_locks_in_child() {
  g_are_used.store_relaxed(false);
  for (Atomic<int>& place : g_kept)
    if (const int kept = place.exchange_acq_rel(0); kept != 0) close_now(kept - 1);
}

}  // namespace spw::platform
