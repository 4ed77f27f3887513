// recvmsg, sendmsg and their kin for many: a message whose header, pieces, address and control data may all be managed.
#include <errno.h>
#include <limits.h>
#include <time.h>

#include <algorithm>

#include "libc/io/bounce.h"
#include "libc/io/buffered.h"
#include "libc/io/descriptors.h"
#include "libc/io/transfers.h"
#include "libc/managed.h"
#include "libc/real.h"
#include "platform/time.h"

namespace spw::libc {

namespace {

constexpr size_t kControlBytesMax = 16 * 1024;
constexpr uint64_t kNsPerSecond = 1'000'000'000;

bool all_plain(const msghdr& m) {
  if (kernel_cannot_reach_any(m.msg_name, m.msg_control, static_cast<void*>(m.msg_iov))) return false;
  return std::none_of(m.msg_iov, m.msg_iov + m.msg_iovlen,
                      [](const iovec& p) { return p.iov_len > 0 && kernel_cannot_reach(p.iov_base); });
}

// A native message that stands for `original`: one piece, a bounce buffer, and native address and control data.
class NativeMessage {
 public:
  explicit NativeMessage(const msghdr& original) : original_(original) {
    if (original.msg_iovlen > IOV_MAX || original.msg_namelen > sizeof(address_)) {
      error_ = EMSGSIZE;
      return;
    }
    if (original.msg_controllen > sizeof(control_)) {
      error_ = ENOBUFS;
      return;
    }
    copy_bytes(pieces_, original.msg_iov, original.msg_iovlen * sizeof(iovec));
    size_t total = scatter().bytes();
    is_cut_ = total > kBounceBytesMax;
    bytes_ = std::min(total, kBounceBytesMax);
  }
  int error() const { return error_; }
  size_t bytes() const { return bytes_; }
  bool is_cut() const { return is_cut_; }
  Scatter scatter() const { return Scatter({pieces_, original_.msg_iovlen}); }
  void copy_in() {
    if (original_.msg_name != nullptr) copy_bytes(&address_, original_.msg_name, original_.msg_namelen);
    if (original_.msg_control != nullptr)
      copy_bytes(control_, original_.msg_control, original_.msg_controllen);
  }
  msghdr header(iovec* piece) {
    msghdr native = original_;
    if (native.msg_name != nullptr) native.msg_name = &address_;
    if (native.msg_control != nullptr) native.msg_control = control_;
    native.msg_iov = piece;
    native.msg_iovlen = 1;
    return native;
  }
  // What a receive changed goes back.
  void copy_out(const msghdr& native, msghdr* to) {
    msghdr result = original_;
    if (original_.msg_name != nullptr)
      copy_bytes(original_.msg_name, &address_, std::min(original_.msg_namelen, native.msg_namelen));
    if (original_.msg_control != nullptr) copy_bytes(original_.msg_control, control_, native.msg_controllen);
    result.msg_namelen = native.msg_namelen;
    result.msg_controllen = native.msg_controllen;
    result.msg_flags = native.msg_flags;
    store_value(to, result);
  }

 private:
  const msghdr original_;
  int error_ = 0;
  size_t bytes_ = 0;
  bool is_cut_ = false;
  sockaddr_storage address_;
  alignas(cmsghdr) char control_[kControlBytesMax];
  iovec pieces_[IOV_MAX];
};

[[gnu::noinline]] ssize_t receive_slowly(int fd, const msghdr& original, msghdr* message, int flags) {
  NativeMessage native(original);
  if (native.error() != 0) return fail(native.error());
  Bounce bounce(native.bytes(), true);
  if (bounce.bytes() == 0 && native.bytes() != 0) return fail(ENOMEM);
  iovec piece{bounce.data(), native.bytes()};
  msghdr header = native.header(&piece);
  ssize_t got = real().recvmsg(fd, &header, flags);
  if (got < 0) return got;
  native.scatter().put(0, bounce.data(), std::min(static_cast<size_t>(got), native.bytes()));
  native.copy_out(header, message);
  return got;
}

// Descriptors may go with it, of buffered files as well.
void note_control(const msghdr& message) {
  if (message.msg_controllen == 0) return;
  if (FileCalls* calls = file_calls()) calls->handed_out();
}

[[gnu::noinline]] ssize_t send_slowly(int fd, const msghdr& original, int flags) {
  NativeMessage native(original);
  if (native.error() != 0) return fail(native.error());
  if (native.is_cut() && keeps_messages(fd)) return fail(EMSGSIZE);
  native.copy_in();
  iovec piece;
  msghdr header = native.header(&piece);
  // One call, but for a stream whose message does not fit: the first takes the control data.
  const auto send = [&](std::byte* data, size_t bytes, size_t) {
    piece = {data, bytes};
    const ssize_t sent = real().sendmsg(fd, &header, flags);
    header.msg_control = nullptr;
    header.msg_controllen = 0;
    return sent;
  };
  return drain(native.scatter(), !native.is_cut(), send, (flags & MSG_ZEROCOPY) != 0);
}

}  // namespace

// One call, whatever the socket: what is received of a stream may come short, and a message must not be cut.
ssize_t receive_message(int fd, msghdr* message, int flags) {
  msghdr original = load_value(message);
  if (!kernel_cannot_reach(message) && all_plain(original)) return real().recvmsg(fd, message, flags);
  return receive_slowly(fd, original, message, flags);
}

ssize_t send_message(int fd, const msghdr* message, int flags) {
  msghdr original = load_value(message);
  note_control(original);
  if (!kernel_cannot_reach(message) && all_plain(original)) return real().sendmsg(fd, message, flags);
  return send_slowly(fd, original, flags);
}

namespace {

bool are_all_plain(const mmsghdr* messages, unsigned count, const timespec* timeout) {
  if (kernel_cannot_reach_any(messages, timeout)) return false;
  return std::all_of(messages, messages + count, [](const mmsghdr& m) { return all_plain(m.msg_hdr); });
}

// Calls `move(message)` for one after the other until one fails or `is_enough()`; an error counts if it is the first's.
template <class Move, class IsEnough>
int one_by_one(mmsghdr* messages, unsigned count, Move move, IsEnough is_enough) {
  unsigned done = 0;
  while (done < count) {
    const ssize_t moved = move(&messages[done].msg_hdr);
    if (moved < 0) return done > 0 ? static_cast<int>(done) : -1;
    store_value(&messages[done++].msg_len, static_cast<unsigned>(moved));
    if (is_enough()) break;
  }
  return static_cast<int>(done);
}

}  // namespace

int receive_messages(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  count = std::min<unsigned>(count, IOV_MAX);  // as the kernel does
  if (are_all_plain(messages, count, timeout)) return real().recvmmsg(fd, messages, count, flags, timeout);
  uint64_t end_ns = platform::kNoTimeout;
  if (timeout != nullptr) {
    const timespec wanted = load_value(timeout);
    const uint64_t seconds = std::clamp<int64_t>(wanted.tv_sec, 0, INT32_MAX);
    end_ns = platform::monotonic_ns() + seconds * kNsPerSecond + static_cast<uint64_t>(wanted.tv_nsec);
  }
  int each_flags = flags & ~MSG_WAITFORONE;
  const int received = one_by_one(
      messages, count, [&](msghdr* message) { return receive_message(fd, message, each_flags); },
      [&] {
        if ((flags & MSG_WAITFORONE) != 0) each_flags |= MSG_DONTWAIT;
        return timeout != nullptr && platform::monotonic_ns() >= end_ns;
      });
  if (timeout != nullptr && received >= 0) {
    const uint64_t now_ns = platform::monotonic_ns();
    const uint64_t left_ns = end_ns - std::min(end_ns, now_ns);
    store_value(timeout, timespec{static_cast<time_t>(left_ns / kNsPerSecond),
                                  static_cast<long>(left_ns % kNsPerSecond)});
  }
  return received;
}

int send_messages(int fd, mmsghdr* messages, unsigned count, int flags) {
  count = std::min<unsigned>(count, IOV_MAX);
  for (unsigned i = 0; i < count; ++i) note_control(load_value(&messages[i].msg_hdr));
  if (are_all_plain(messages, count, nullptr)) return real().sendmmsg(fd, messages, count, flags);
  return one_by_one(
      messages, count, [&](msghdr* message) { return send_message(fd, message, flags); },
      [] { return false; });
}

}  // namespace spw::libc
