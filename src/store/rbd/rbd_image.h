// A connection to a Ceph cluster and one image that it has open, with the lock of the image unless it is only read.
//
// The lock is Ceph's own (the feature exclusive-lock): whoever has it writes, and the cluster takes no write of whoever
// has lost it. A second user is refused. The lock of a client that has died goes over to the next one: at once when
// that was a process of this machine, else when the cluster has noticed (30 s).
//
// librados has threads of its own. They are started and ended by threads of ours, whose signal mask they inherit: all
// blocked. A forked child has none of them and must not use the image, nor close it.
//
// Time limits: opening and every request, each of its steps, waits for the cluster for the address's timeout at most,
// and then fails with ETIMEDOUT.
// Threads: open() and the destructor one; the rest any. Lifetime: the destructor with nothing under way.
#pragma once

#include <unistd.h>

#include <memory>
#include <string>

#include "platform/file.h"
#include "store/rbd/librbd.h"
#include "store/rbd/rbd_address.h"

namespace spw::store {

class RbdImage {
 public:
  // Errors: a sentence with the address.
  static Result<std::unique_ptr<RbdImage>> open(const Librbd& lib, const RbdAddress& address);
  ~RbdImage();

  const Librbd& lib() const { return lib_; }
  rbd_image_t get() const { return image_; }
  const RbdAddress& address() const { return address_; }
  uint64_t size_bytes() const { return size_bytes_; }
  uint64_t object_bytes() const { return object_bytes_; }

 private:
  RbdImage(const Librbd& lib, const RbdAddress& address) : lib_(lib), address_(address) {}
  Status open_here();
  Status connect();
  Status open_image();
  Status lock();
  Status acquire_lock();
  std::string owner() const;
  bool was_of_this_scope(const std::string& owner) const;
  void close_here();
  Status refused(int error, const std::string& why) const;

  const Librbd lib_;
  const RbdAddress address_;
  const int process_ = ::getpid();  // whose threads librados has
  platform::File claim_;            // of the image on this machine
  rados_t cluster_ = nullptr;
  bool connected_ = false;
  rados_ioctx_t pool_ = nullptr;
  rbd_image_t image_ = nullptr;
  uint64_t size_bytes_ = 0;
  uint64_t object_bytes_ = 0;
};

}  // namespace spw::store
