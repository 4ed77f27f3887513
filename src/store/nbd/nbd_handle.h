// One connection to an NBD server, as libnbd has it: made with a deadline, driven by poll, and what its export is like.
//
// Threads: one at a time. Lifetime: `lib` outlives it. Closing never waits.
#pragma once

#include <cstdint>
#include <utility>

#include "store/nbd/libnbd.h"
#include "store/nbd/nbd_address.h"

namespace spw::store {

struct NbdExport {
  uint64_t size_bytes = 0;
  uint64_t block_bytes_min = 1;
  uint64_t payload_bytes_max = 0;
  bool read_only = false;
  bool multi_conn = false;
  bool can_flush = false;
  bool can_zero = false;

  bool operator==(const NbdExport&) const = default;
};

class NbdHandle {
 public:
  // Connects and negotiates until `deadline_ns`; a connection that is reset meanwhile is tried again. Errors: a
  // sentence with the address, what libnbd said and what to do.
  static Result<NbdHandle> connect(const Libnbd& lib, const NbdAddress& address, uint64_t deadline_ns);
  NbdHandle() = default;
  NbdHandle(NbdHandle&& other) noexcept
      : lib_(other.lib_), handle_(std::exchange(other.handle_, nullptr)), export_(other.export_) {}
  NbdHandle& operator=(NbdHandle&& other) noexcept {
    std::swap(lib_, other.lib_);
    std::swap(handle_, other.handle_);
    std::swap(export_, other.export_);
    return *this;
  }
  ~NbdHandle();

  // Goes on with another copy of the functions.
  void adopt(const Libnbd& lib) { lib_ = &lib; }

  nbd_handle* get() const { return handle_; }
  bool is_open() const { return handle_ != nullptr; }
  const NbdExport& facts() const { return export_; }
  // The connection is gone: the server closed it, or it broke.
  bool is_gone() const;
  // Lets libnbd send and receive what it can. Sleeps until it can,
  // `wake_fd` (-1: none) is readable or deadline_ns. 0 or a positive errno.
  int poll(int wake_fd, uint64_t deadline_ns);

 private:
  static Result<NbdHandle> connect_once(const Libnbd& lib, const NbdAddress& address, uint64_t deadline_ns);
  Status start(const NbdAddress& address);
  Status ask_for_tls(const NbdAddress& address);
  Status read_facts(const NbdAddress& address);

  const Libnbd* lib_ = nullptr;
  nbd_handle* handle_ = nullptr;
  NbdExport export_;
};

}  // namespace spw::store
