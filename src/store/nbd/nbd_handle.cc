#include "store/nbd/nbd_handle.h"

#include <poll.h>

#include <algorithm>

#include "base/units.h"
#include "platform/time.h"

namespace spw::store {

namespace {

// What a server that says nothing about its limits has to accept, by the protocol.
constexpr uint64_t kPayloadBytesDefault = 32 * kMiB;
constexpr unsigned kConnectAttemptsMax = 4;
constexpr uint64_t kConnectPauseNs = 50'000'000;

Status refused(const NbdAddress& address, int error, const std::string& why) {
  return Status::sentence(error == 0 ? ENOTCONN : error, address.text + ": " + why);
}

// libnbd's own words: "nbd_aio_connect_tcp: connect: localhost:10809: Connection refused".
Status failed(const Libnbd& lib, const NbdAddress& address, const std::string& what) {
  const char* words = lib.get_error();
  return refused(address, lib.get_errno(),
                 what + " (" + (words ? words : "no reason given") +
                     "); see that the server runs there and has this export");
}

// Milliseconds for poll(2), rounded up.
int poll_timeout(uint64_t deadline_ns) {
  if (deadline_ns == platform::kNoTimeout) return -1;
  uint64_t now_ns = platform::monotonic_ns();
  if (deadline_ns <= now_ns) return 0;
  constexpr uint64_t kNsPerMs = 1'000'000;
  constexpr uint64_t kLongestMs = 60'000;
  return static_cast<int>(std::min((deadline_ns - now_ns + kNsPerMs - 1) / kNsPerMs, kLongestMs));
}

}  // namespace

NbdHandle::~NbdHandle() {
  if (handle_) lib_->close(handle_);
}

bool NbdHandle::is_gone() const {
  return lib_->aio_is_dead(handle_) != 0 || lib_->aio_is_closed(handle_) != 0;
}

int NbdHandle::poll(int wake_fd, uint64_t deadline_ns) {
  const unsigned direction = lib_->aio_get_direction(handle_);
  short events = 0;
  if (direction & LIBNBD_AIO_DIRECTION_READ) events |= POLLIN;
  if (direction & LIBNBD_AIO_DIRECTION_WRITE) events |= POLLOUT;
  pollfd fds[] = {{lib_->aio_get_fd(handle_), events, 0}, {wake_fd, POLLIN, 0}};
  int ready = ::poll(fds, 2, poll_timeout(deadline_ns));
  if (ready < 0) return errno == EINTR ? 0 : errno;
  // libnbd reads the end of the stream and errors of the socket where it would read or write.
  short happened = fds[0].revents;
  int result = 0;
  if (happened & (POLLIN | POLLHUP | POLLERR) && (events & POLLIN)) {
    result = lib_->aio_notify_read(handle_);
  } else if (happened & (POLLOUT | POLLHUP | POLLERR) && (events & POLLOUT)) {
    result = lib_->aio_notify_write(handle_);
  } else if (happened & (POLLHUP | POLLERR | POLLNVAL)) {
    return ENOTCONN;
  }
  if (result == 0) return 0;
  int error = lib_->get_errno();
  return error == 0 ? ENOTCONN : error;
}

// A server that is busy with the end of another connection may reset a new one in the middle of its negotiation (nbdkit
// does so once in a hundred times).
Result<NbdHandle> NbdHandle::connect(const Libnbd& lib, const NbdAddress& address, uint64_t deadline_ns) {
  for (unsigned attempt = 1;; ++attempt) {
    Result<NbdHandle> made = connect_once(lib, address, deadline_ns);
    if (made || made.status().error() != ECONNRESET || attempt == kConnectAttemptsMax) return made;
    platform::sleep_ns(kConnectPauseNs);
  }
}

Result<NbdHandle> NbdHandle::connect_once(const Libnbd& lib, const NbdAddress& address,
                                          uint64_t deadline_ns) {
  NbdHandle made;
  made.lib_ = &lib;
  made.handle_ = lib.create();
  if (!made.handle_) return failed(lib, address, "no connection can be made");
  if (Status status = made.start(address); !status) return status;
  while (lib.aio_is_ready(made.handle_) == 0) {
    if (made.is_gone()) return failed(lib, address, "the server ended the connection");
    if (platform::monotonic_ns() >= deadline_ns)
      return refused(
          address, ETIMEDOUT,
          "the server does not answer; see that it runs there, or give it longer with timeout=SECONDS");
    if (made.poll(-1, deadline_ns) != 0) return failed(lib, address, "it cannot be connected to");
  }
  if (Status status = made.read_facts(address); !status) return status;
  return made;
}

Status NbdHandle::start(const NbdAddress& address) {
  // A read that fails says so; clearing its buffer first gains nothing.
  if (lib_->set_pread_initialize(handle_, false) != 0) return failed(*lib_, address, "it cannot be set up");
  if (lib_->set_export_name(handle_, address.export_name.c_str()) != 0)
    return failed(*lib_, address, "the export cannot be named so");
  if (Status status = ask_for_tls(address); !status) return status;
  int result = address.socket.empty()
                   ? lib_->aio_connect_tcp(handle_, address.host.c_str(), address.port.c_str())
                   : lib_->aio_connect_unix(handle_, address.socket.c_str());
  return result == 0 ? Status::ok() : failed(*lib_, address, "it cannot be connected to");
}

// A server without TLS, or that cannot show who it is, is refused by libnbd.
Status NbdHandle::ask_for_tls(const NbdAddress& address) {
  if (!address.tls) return {};
  if (lib_->supports_tls(handle_) != 1)
    return refused(address, ENOTSUP,
                   "this libnbd was built without TLS; use nbd: over a network that can be trusted");
  const auto given = [](const std::string& text) { return !text.empty(); };
  if (lib_->set_tls(handle_, LIBNBD_TLS_REQUIRE) != 0 ||
      (given(address.tls_certificates) &&
       lib_->set_tls_certificates(handle_, address.tls_certificates.c_str()) != 0) ||
      (given(address.tls_psk_file) && lib_->set_tls_psk_file(handle_, address.tls_psk_file.c_str()) != 0) ||
      (given(address.tls_username) && lib_->set_tls_username(handle_, address.tls_username.c_str()) != 0))
    return failed(*lib_, address, "TLS cannot be set up");
  return {};
}

Status NbdHandle::read_facts(const NbdAddress& address) {
  int64_t size = lib_->get_size(handle_);
  if (size < 0) return failed(*lib_, address, "the server does not tell the export's size");
  int64_t block_min = lib_->get_block_size(handle_, LIBNBD_SIZE_MINIMUM);
  int64_t payload_max = lib_->get_block_size(handle_, LIBNBD_SIZE_MAXIMUM);
  export_.block_bytes_min = block_min > 0 ? static_cast<uint64_t>(block_min) : 1;
  if (!is_power_of_two(export_.block_bytes_min) || export_.block_bytes_min > uint64_t{1} << kMaxBlockShift)
    return refused(address, EINVAL,
                   "the server takes only requests of multiples of " +
                       std::to_string(export_.block_bytes_min) + " bytes, which no block is");
  export_.size_bytes = round_down(static_cast<uint64_t>(size), export_.block_bytes_min);
  if (export_.size_bytes == 0) return refused(address, EINVAL, "the export is empty");
  export_.payload_bytes_max = payload_max > 0
                                  ? std::min(static_cast<uint64_t>(payload_max), kPayloadBytesDefault)
                                  : kPayloadBytesDefault;
  const uint64_t grain = std::max(kMmuPageBytes, export_.block_bytes_min);
  if (export_.payload_bytes_max < grain)
    return refused(address, EINVAL, "the server takes no request of " + format_size(grain));
  export_.payload_bytes_max = round_down(export_.payload_bytes_max, grain);
  export_.read_only = lib_->is_read_only(handle_) > 0;
  export_.multi_conn = lib_->can_multi_conn(handle_) > 0;
  export_.can_flush = lib_->can_flush(handle_) > 0;
  export_.can_zero = lib_->can_zero(handle_) > 0;
  return Status::ok();
}

}  // namespace spw::store
