#include "platform/own_descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/atomic.h"
#include "platform/record_locks.h"

namespace spw::platform {

namespace {

constexpr unsigned kWordBits = 64;
constexpr unsigned kWords = kOwnDescriptorsMax / kWordBits;
// Where RLIMIT_NOFILE is 1024, as it mostly is, a fourth is left for the runtime. Much higher, and forks would copy a
// longer table of descriptors.
constexpr int kFirstOwn = 768;

constinit Atomic<uint64_t> g_own[kWords];
constinit Atomic<int> g_first{-1};  // none is known

bool can_be_known(int fd) { return fd >= 0 && fd < kOwnDescriptorsMax; }
uint64_t word_bit_of(int fd) { return uint64_t{1} << (static_cast<unsigned>(fd) % kWordBits); }
Atomic<uint64_t>& word_of(int fd) { return g_own[static_cast<unsigned>(fd) / kWordBits]; }

// To the lowest free number from `first` on; closed on exec or not, as it is. errno is kept.
int moved(int fd, int first, bool is_closed_on_exec) {
  const int saved_errno = errno;
  const bool closes = is_closed_on_exec || (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
  const int to = ::fcntl(fd, closes ? F_DUPFD_CLOEXEC : F_DUPFD, first);
  const bool is_gone = to < 0 && errno == EBADF;  // somebody closed it meanwhile
  if (to >= 0) close_unlocked(fd);
  errno = saved_errno;
  return to >= 0 ? to : is_gone ? -1 : fd;
}

int taken(int fd, bool is_closed_on_exec) {
  const int first = g_first.load_relaxed();
  if (fd < 0 || first < 0) return fd;
  if (fd < first) fd = moved(fd, first, is_closed_on_exec);
  know_descriptor(fd);
  return fd;
}

}  // namespace

void keep_own_descriptors() {
  rlimit limit{};
  const bool is_limited = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < kOwnDescriptorsMax;
  const int most = is_limited ? static_cast<int>(limit.rlim_cur) : kOwnDescriptorsMax;
  g_first.store_relaxed(std::min(kFirstOwn, most / 4 * 3));
}

bool is_own_descriptor(int fd) {
  return can_be_known(fd) && (word_of(fd).load_relaxed() & word_bit_of(fd)) != 0;
}

int next_own_descriptor(unsigned from) {
  for (unsigned word = from / kWordBits; word < kWords; ++word) {
    uint64_t bits = g_own[word].load_relaxed();
    if (word == from / kWordBits) bits &= ~uint64_t{0} << (from % kWordBits);
    if (bits != 0) return static_cast<int>(word * kWordBits + static_cast<unsigned>(std::countr_zero(bits)));
  }
  return -1;
}

int take_descriptor(int fd) { return taken(fd, false); }

int take_closed_on_exec(int fd) { return taken(fd, true); }

void know_descriptor(int fd) {
  if (can_be_known(fd)) word_of(fd).fetch_or_relaxed(word_bit_of(fd));
}

void drop_descriptor(int fd) {
  if (can_be_known(fd)) word_of(fd).fetch_and_relaxed(~word_bit_of(fd));
}

}  // namespace spw::platform
