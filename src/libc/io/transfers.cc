#include "libc/io/transfers.h"

#include <errno.h>
#include <limits.h>

#include <algorithm>

#include "libc/entry.h"
#include "libc/io/bounce.h"
#include "libc/io/descriptors.h"
#include "libc/managed.h"
#include "libc/map/coherence.h"
#include "libc/map/parts.h"
#include "libc/real.h"

namespace spw::libc {

namespace {

// Input: call(data, bytes, done) -> bytes or -1; go_on() after each full piece.
template <class Call, class GoOn>
ssize_t fill(const Scatter& to, bool whole, Call call, GoOn go_on) {
  size_t total = to.bytes();
  Bounce bounce(total, whole);
  if (bounce.bytes() == 0 && total != 0) return fail(ENOMEM);
  size_t done = 0;
  do {
    size_t wanted = std::min(total - done, bounce.bytes());
    ssize_t got = call(bounce.data(), wanted, done);
    if (got < 0) return done > 0 ? static_cast<ssize_t>(done) : -1;
    to.put(done, bounce.data(), std::min(static_cast<size_t>(got), wanted));
    done += static_cast<size_t>(got);
    if (static_cast<size_t>(got) < wanted) break;
  } while (done < total && go_on());
  return static_cast<ssize_t>(done);
}

// Whether a transfer of `bytes` on `fd` must be one call, and whether it may be.
struct Shape {
  bool whole = false;
  int error = 0;
};
Shape shape_of(int fd, size_t bytes) {
  if (bytes <= kBounceBytes || !keeps_messages(fd)) return {};
  return {true, bytes > kBounceBytesMax ? EMSGSIZE : 0};
}

ssize_t read_scattered(int fd, const Scatter& to) {
  Shape shape = shape_of(fd, to.bytes());
  // A message shorter than the buffer is legal, so a buffer above the limit is only cut.
  bool regular = to.bytes() > kBounceBytes && is_regular(fd);
  return fill(
      to, shape.whole && shape.error == 0,
      [&](std::byte* data, size_t bytes, size_t) { return files_or_real().read(fd, data, bytes); },
      [&] { return regular || (!shape.whole && more_is_there(fd)); });
}

ssize_t write_scattered(int fd, const Scatter& from) {
  Shape shape = shape_of(fd, from.bytes());
  if (shape.error != 0) return fail(shape.error);
  return drain(from, shape.whole,
               [&](std::byte* data, size_t bytes, size_t) { return files_or_real().write(fd, data, bytes); });
}

ssize_t pread_scattered(int fd, const Scatter& to, off_t offset) {
  auto call = [&](std::byte* data, size_t bytes, size_t done) {
    return files_or_real().pread(fd, data, bytes, offset + static_cast<off_t>(done));
  };
  return fill(to, false, call, [] { return true; });
}

ssize_t pwrite_scattered(int fd, const Scatter& from, off_t offset) {
  return drain(from, false, [&](std::byte* data, size_t bytes, size_t done) {
    return files_or_real().pwrite(fd, data, bytes, offset + static_cast<off_t>(done));
  });
}

// Where the program may not access the first byte, the call is made with an address that nobody may: whatever else is
// wrong with it the kernel says first, and consumes what it would consume.
void* no_address() {
  void* nowhere = reinterpret_cast<void*>(1);
  asm("" : "+r"(nowhere));  // or a compiler warns that so many bytes are not there
  return nowhere;
}

iovec piece_of(const void* buffer, size_t bytes) { return {const_cast<void*>(buffer), bytes}; }

// What any of the pieces needs.
template <class Needs>
bool any_needs(Needs needs, const iovec* list, size_t count) {
  return std::any_of(list, list + count, [&](const iovec& p) { return p.iov_len > 0 && needs(p.iov_base); });
}

// The common shape of the vectored calls; needs(buffer): whether a
// piece cannot be given to the kernel. The list may itself be managed.
template <class Needs, class Plain, class Managed>
[[gnu::noinline]] ssize_t vectored_slowly(Needs needs, bool is_input, const iovec* list, int count,
                                          Plain plain, Managed managed) {
  iovec copy[IOV_MAX];  // 16 KiB of stack, which is why plain calls do not come here
  auto n = static_cast<size_t>(count);
  copy_bytes(copy, list, n * sizeof(iovec));
  if (!any_needs(needs, copy, n)) return plain(copy, count);
  const Reached reached = reach({copy, n}, is_input);
  if (reached.bytes == 0 && reached.is_cut) {
    iovec none{no_address(), 1};
    return plain(&none, 1);
  }
  return managed(Scatter({copy, reached.count}));
}

template <class Needs, class Plain, class Managed>
ssize_t vectored(Needs needs, bool is_input, const iovec* list, int count, Plain plain, Managed managed) {
  if (count < 0 || count > IOV_MAX) return fail(EINVAL);
  const size_t list_bytes = static_cast<size_t>(count) * sizeof(iovec);
  if (reachable_bytes(list, list_bytes, false) < list_bytes) return fail(EFAULT);
  if (!kernel_cannot_reach(list) && !any_needs(needs, list, static_cast<size_t>(count)))
    return plain(list, count);
  return vectored_slowly(needs, is_input, list, count, plain, managed);
}

// Around the calls themselves: coherence.h.
template <class Call>
ssize_t input(int fd, off_t offset, size_t bytes, Call call) {
  if (files_are_written_in_memory() && !before_input(fd, offset, bytes)) return fail(EIO);
  return call();
}
template <class Call>
ssize_t output(int fd, off_t offset, const void* buffer, size_t bytes, Call call) {
  const OutputTurn turn(fd, offset);
  if (files_are_written_in_memory() && !before_output(fd, offset, bytes)) return fail(EIO);
  const ssize_t done = call();
  const iovec piece = piece_of(buffer, bytes);
  if (done > 0 && files_are_written_in_memory())
    after_output(fd, offset, &piece, 1, static_cast<size_t>(done));
  return done;
}

// A list of pieces that may itself be managed, if it is one that the kernel takes.
struct Pieces {
  iovec list[IOV_MAX];
  int count = 0;

  Pieces(const iovec* from, int wanted) {
    if (wanted < 0 || wanted > IOV_MAX) return;
    const size_t bytes = static_cast<size_t>(wanted) * sizeof(iovec);
    if (reachable_bytes(from, bytes, false) < bytes) return;
    copy_bytes(list, from, bytes);
    count = wanted;
  }
  size_t bytes() const {
    size_t sum = 0;
    for (int i = 0; i < count; ++i) sum += list[i].iov_len;
    return sum;
  }
};
[[gnu::noinline]] bool before_vectored(int fd, off_t offset, const iovec* list, int count) {
  return before_input(fd, offset, Pieces(list, count).bytes());
}
[[gnu::noinline]] bool before_vectored_output(int fd, off_t offset, const iovec* list, int count) {
  return before_output(fd, offset, Pieces(list, count).bytes());
}
[[gnu::noinline]] void after_vectored(int fd, off_t offset, const iovec* list, int count, ssize_t done) {
  const Pieces pieces(list, count);
  after_output(fd, offset, pieces.list, pieces.count, static_cast<size_t>(done));
}
template <class Plain, class Managed>
ssize_t vectored_input(int fd, off_t offset, const iovec* list, int count, Plain plain, Managed managed) {
  if (files_are_written_in_memory() && !before_vectored(fd, offset, list, count)) return fail(EIO);
  return vectored([&](const void* p) { return input_needs_help(fd, p); }, true, list, count, plain, managed);
}
template <class Plain, class Managed>
ssize_t vectored_output(int fd, off_t offset, const iovec* list, int count, Plain plain, Managed managed) {
  const OutputTurn turn(fd, offset);
  if (files_are_written_in_memory() && !before_vectored_output(fd, offset, list, count)) return fail(EIO);
  const ssize_t done =
      vectored([](const void* p) { return kernel_cannot_reach(p); }, false, list, count, plain, managed);
  if (done > 0 && files_are_written_in_memory()) after_vectored(fd, offset, list, count, done);
  return done;
}

}  // namespace

bool input_needs_help(int fd, const void* buffer) {
  return is_managed(buffer) && (kernel_cannot_reach(buffer) || is_direct(fd));
}

ssize_t read_fd(int fd, void* buffer, size_t bytes) {
  return input(fd, kFilePosition, bytes, [&]() -> ssize_t {
    if (!input_needs_help(fd, buffer)) return files_or_real().read(fd, buffer, bytes);
    iovec piece = piece_of(buffer, reachable_bytes(buffer, bytes, true));
    if (piece.iov_len == 0 && bytes > 0) return real().read(fd, no_address(), bytes);
    return read_scattered(fd, Scatter({&piece, 1}));
  });
}

ssize_t write_fd(int fd, const void* buffer, size_t bytes) {
  return output(fd, kFilePosition, buffer, bytes, [&]() -> ssize_t {
    if (!kernel_cannot_reach(buffer)) return files_or_real().write(fd, buffer, bytes);
    iovec piece = piece_of(buffer, reachable_bytes(buffer, bytes, false));
    if (piece.iov_len == 0 && bytes > 0) return real().write(fd, no_address(), bytes);
    return write_scattered(fd, Scatter({&piece, 1}));
  });
}

ssize_t pread_fd(int fd, void* buffer, size_t bytes, off_t offset) {
  return input(fd, offset, bytes, [&]() -> ssize_t {
    if (!input_needs_help(fd, buffer)) return files_or_real().pread(fd, buffer, bytes, offset);
    iovec piece = piece_of(buffer, reachable_bytes(buffer, bytes, true));
    if (piece.iov_len == 0 && bytes > 0) return real().pread(fd, no_address(), bytes, offset);
    return pread_scattered(fd, Scatter({&piece, 1}), offset);
  });
}

ssize_t pwrite_fd(int fd, const void* buffer, size_t bytes, off_t offset) {
  return output(fd, offset, buffer, bytes, [&]() -> ssize_t {
    if (!kernel_cannot_reach(buffer)) return files_or_real().pwrite(fd, buffer, bytes, offset);
    iovec piece = piece_of(buffer, reachable_bytes(buffer, bytes, false));
    if (piece.iov_len == 0 && bytes > 0) return real().pwrite(fd, no_address(), bytes, offset);
    return pwrite_scattered(fd, Scatter({&piece, 1}), offset);
  });
}

ssize_t readv_fd(int fd, const iovec* pieces, int count) {
  return vectored_input(
      fd, kFilePosition, pieces, count,
      [&](const iovec* list, int n) { return files_or_real().readv(fd, list, n); },
      [&](const Scatter& to) { return read_scattered(fd, to); });
}
ssize_t writev_fd(int fd, const iovec* pieces, int count) {
  return vectored_output(
      fd, kFilePosition, pieces, count,
      [&](const iovec* list, int n) { return files_or_real().writev(fd, list, n); },
      [&](const Scatter& from) { return write_scattered(fd, from); });
}
ssize_t preadv_fd(int fd, const iovec* pieces, int count, off_t offset) {
  return vectored_input(
      fd, offset, pieces, count,
      [&](const iovec* list, int n) { return files_or_real().preadv(fd, list, n, offset); },
      [&](const Scatter& to) { return pread_scattered(fd, to, offset); });
}
ssize_t pwritev_fd(int fd, const iovec* pieces, int count, off_t offset) {
  return vectored_output(
      fd, offset, pieces, count,
      [&](const iovec* list, int n) { return files_or_real().pwritev(fd, list, n, offset); },
      [&](const Scatter& from) { return pwrite_scattered(fd, from, offset); });
}

ssize_t preadv2_fd(int fd, const iovec* pieces, int count, off_t offset, int flags) {
  auto call = [&](std::byte* data, size_t bytes, size_t done) {
    iovec piece{data, bytes};
    return files_or_real().preadv2(fd, &piece, 1, offset < 0 ? offset : offset + static_cast<off_t>(done),
                                   flags);
  };
  return vectored_input(
      fd, offset, pieces, count,
      [&](const iovec* list, int n) { return files_or_real().preadv2(fd, list, n, offset, flags); },
      [&](const Scatter& to) { return fill(to, false, call, [&] { return offset >= 0; }); });
}
ssize_t pwritev2_fd(int fd, const iovec* pieces, int count, off_t offset, int flags) {
  auto call = [&](std::byte* data, size_t bytes, size_t done) {
    iovec piece{data, bytes};
    return files_or_real().pwritev2(fd, &piece, 1, offset < 0 ? offset : offset + static_cast<off_t>(done),
                                    flags);
  };
  return vectored_output(
      fd, offset, pieces, count,
      [&](const iovec* list, int n) { return files_or_real().pwritev2(fd, list, n, offset, flags); },
      [&](const Scatter& from) { return drain(from, false, call); });
}

ssize_t receive(int fd, void* buffer, size_t bytes, int flags, sockaddr* from, socklen_t* from_bytes) {
  if (!kernel_cannot_reach_any(static_cast<const void*>(buffer), static_cast<const void*>(from),
                               static_cast<const void*>(from_bytes)))
    return real().recvfrom(fd, buffer, bytes, flags, from, from_bytes);
  sockaddr_storage address;
  socklen_t address_bytes = sizeof(address), room = from_bytes == nullptr ? 0 : load_value(from_bytes);
  bool message = keeps_messages(fd);
  iovec piece = piece_of(buffer, reachable_bytes(buffer, bytes, true));
  if (piece.iov_len == 0 && bytes > 0)
    return real().recvfrom(fd, no_address(), bytes, flags, nullptr, nullptr);
  bool whole = message && bytes > kBounceBytes && bytes <= kBounceBytesMax;
  auto call = [&](std::byte* data, size_t n, size_t) {
    address_bytes = sizeof(address);
    return real().recvfrom(fd, data, n, flags,
                           from == nullptr ? nullptr : reinterpret_cast<sockaddr*>(&address),
                           from == nullptr ? nullptr : &address_bytes);
  };
  bool once = message || (flags & MSG_PEEK) != 0;
  ssize_t got = fill(Scatter({&piece, 1}), whole, call,
                     [&] { return !once && ((flags & MSG_WAITALL) != 0 || more_is_there(fd)); });
  if (got >= 0 && from != nullptr && from_bytes != nullptr) {
    copy_bytes(from, &address, std::min<size_t>({room, address_bytes, sizeof(address)}));
    store_value(from_bytes, address_bytes);
  }
  return got;
}

ssize_t send_to(int fd, const void* buffer, size_t bytes, int flags, const sockaddr* to, socklen_t to_bytes) {
  if (!kernel_cannot_reach_any(buffer, static_cast<const void*>(to)))
    return real().sendto(fd, buffer, bytes, flags, to, to_bytes);
  sockaddr_storage address;
  if (to != nullptr && to_bytes > sizeof(address)) return fail(EINVAL);
  if (to != nullptr) copy_bytes(&address, to, to_bytes);
  Shape shape = shape_of(fd, bytes);
  if (shape.error != 0) return fail(shape.error);
  if (reachable_bytes(buffer, bytes, false) < bytes) return fail(EFAULT);
  iovec piece = piece_of(buffer, bytes);
  const auto send = [&](std::byte* data, size_t n, size_t) {
    return real().sendto(fd, data, n, flags, to == nullptr ? nullptr : reinterpret_cast<sockaddr*>(&address),
                         to_bytes);
  };
  return drain(Scatter({&piece, 1}), shape.whole, send, (flags & MSG_ZEROCOPY) != 0);
}

ssize_t random_bytes(void* buffer, size_t bytes, unsigned flags) {
  if (!kernel_cannot_reach(buffer)) return real().getrandom(buffer, bytes, flags);
  iovec piece = piece_of(buffer, reachable_bytes(buffer, bytes, true));
  if (piece.iov_len == 0 && bytes > 0) return real().getrandom(no_address(), bytes, flags);
  // It comes short where something is to be done in this thread meanwhile,
  // which may be of the runtime's own making (a transfer that ends).
  auto call = [&](std::byte* data, size_t n, size_t) {
    size_t got = 0;
    while (got < n) {
      const ssize_t more = real().getrandom(data + got, n - got, flags);
      if (more < 0) return got > 0 ? static_cast<ssize_t>(got) : more;
      got += static_cast<size_t>(more);
    }
    return static_cast<ssize_t>(got);
  };
  return fill(Scatter({&piece, 1}), false, call, [] { return true; });
}

}  // namespace spw::libc

SPW_ENTRY ssize_t __spw_getrandom_v1(void* buffer, size_t bytes, unsigned flags) {
  return spw::libc::random_bytes(buffer, bytes, flags);
}
