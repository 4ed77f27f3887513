#include "libc/io/remote_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "libc/io/bounce.h"
#include "libc/io/descriptors.h"
#include "libc/io/transfers.h"
#include "libc/managed.h"
#include "libc/map/parts.h"
#include "libc/real.h"

namespace spw::libc {

namespace {

bool any_out_of_reach(const iovec* list, size_t count) {
  if (kernel_cannot_reach(list)) return true;
  return std::any_of(list, list + std::min<size_t>(count, IOV_MAX),
                     [](const iovec& p) { return p.iov_len > 0 && kernel_cannot_reach(p.iov_base); });
}

bool is_pipe(int fd) {
  struct stat info;
  return files_or_real().fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode);
}

bool is_this_process(pid_t process) {
  if (process == getpid()) return true;
  const int saved_errno = errno;
  const bool is_ours = process > 0 && real().syscall(SYS_tgkill, getpid(), process, 0) == 0;
  errno = saved_errno;
  return is_ours;
}

// One copy of a call: between native memory and a piece of the far side.
class Far {
 public:
  Far(bool is_read, pid_t process, unsigned long flags)
      : is_read_(is_read), process_(process), flags_(flags), is_own_(is_this_process(process)) {}
  bool is_own() const { return is_own_; }

  ssize_t copy(void* near, void* far, size_t bytes) const {
    if (is_own_ && kernel_cannot_reach(far)) return copy_own(near, far, bytes);
    const iovec here{near, bytes}, there{far, bytes};
    return is_read_ ? real().process_vm_readv(process_, &here, 1, &there, 1, flags_)
                    : real().process_vm_writev(process_, &here, 1, &there, 1, flags_);
  }

 private:
  ssize_t copy_own(void* near, void* far, size_t bytes) const {
    bytes = reachable_bytes(far, bytes, !is_read_);
    if (bytes == 0) return fail(EFAULT);
    is_read_ ? copy_bytes(near, far, bytes) : copy_bytes(far, near, bytes);
    return static_cast<ssize_t>(bytes);
  }

  const bool is_read_;
  const pid_t process_;
  const unsigned long flags_;
  const bool is_own_;
};

// The lists are native copies.
ssize_t copy_in_pieces(bool is_read, const Far& far, const Scatter& near, const iovec* remote,
                       size_t remote_count) {
  Bounce bounce(near.bytes());
  if (bounce.bytes() == 0 && near.bytes() != 0) return fail(ENOMEM);
  size_t done = 0;
  for (size_t i = 0; i < remote_count; ++i) {
    for (size_t at = 0; at < remote[i].iov_len && done < near.bytes();) {
      const size_t wanted = std::min({remote[i].iov_len - at, near.bytes() - done, bounce.bytes()});
      if (!is_read) near.get(done, bounce.data(), wanted);
      const ssize_t copied = far.copy(bounce.data(), static_cast<char*>(remote[i].iov_base) + at, wanted);
      if (copied < 0) return done > 0 ? static_cast<ssize_t>(done) : -1;
      if (is_read) near.put(done, bounce.data(), static_cast<size_t>(copied));
      done += static_cast<size_t>(copied);
      at += static_cast<size_t>(copied);
      if (static_cast<size_t>(copied) < wanted) return static_cast<ssize_t>(done);
    }
  }
  return static_cast<ssize_t>(done);
}

[[gnu::noinline]] ssize_t copy_slowly(bool is_read, const Far& far, const RemotePieces& pieces) {
  iovec local[IOV_MAX], remote[IOV_MAX];  // 32 KiB of stack, which is why plain calls do not come here
  if (pieces.local_count > IOV_MAX || pieces.remote_count > IOV_MAX) return fail(EINVAL);
  const size_t local_bytes = pieces.local_count * sizeof(iovec),
               remote_bytes = pieces.remote_count * sizeof(iovec);
  if (reachable_bytes(pieces.local, local_bytes, false) < local_bytes ||
      reachable_bytes(pieces.remote, remote_bytes, false) < remote_bytes)
    return fail(EFAULT);
  copy_bytes(local, pieces.local, local_bytes);
  copy_bytes(remote, pieces.remote, remote_bytes);
  const Reached reached = reach({local, pieces.local_count}, is_read);
  if (reached.bytes == 0 && reached.is_cut) return fail(EFAULT);
  return copy_in_pieces(is_read, far, Scatter({local, reached.count}), remote, pieces.remote_count);
}

}  // namespace

ssize_t splice_memory(int fd, const iovec* pieces, size_t count, unsigned flags) {
  if (count > IOV_MAX || !any_out_of_reach(pieces, count)) return real().vmsplice(fd, pieces, count, flags);
  if (!is_pipe(fd)) return fail(EBADF);
  const int once = (flags & SPLICE_F_NONBLOCK) != 0 ? RWF_NOWAIT : 0, n = static_cast<int>(count);
  const bool is_output = (files_or_real().fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
  return is_output ? pwritev2_fd(fd, pieces, n, -1, once) : preadv2_fd(fd, pieces, n, -1, once);
}

ssize_t copy_remote(bool is_read, pid_t process, const RemotePieces& pieces, unsigned long flags) {
  const auto as_it_is = [&] {
    return is_read ? real().process_vm_readv(process, pieces.local, pieces.local_count, pieces.remote,
                                             pieces.remote_count, flags)
                   : real().process_vm_writev(process, pieces.local, pieces.local_count, pieces.remote,
                                              pieces.remote_count, flags);
  };
  const bool near = any_out_of_reach(pieces.local, pieces.local_count) || kernel_cannot_reach(pieces.remote);
  if (!near && !any_out_of_reach(pieces.remote, pieces.remote_count)) return as_it_is();
  const Far far(is_read, process, flags);
  return near || far.is_own() ? copy_slowly(is_read, far, pieces) : as_it_is();
}

}  // namespace spw::libc
