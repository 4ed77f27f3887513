// One image of a pool that this process has open, with the lock of the image unless it is only read: one that there
// was, or a spill image (spill_image.h) that is made, and removed when it is closed.
//
// The lock is Ceph's own (the feature exclusive-lock): whoever has it writes, and the cluster takes no write of whoever
// has lost it. A second user is refused. The lock of a client that has died goes over to the next one: at once when
// that was a process of this machine, else when the cluster has noticed (30 s).
//
// Time limits, forks: as the pool. Threads: open(), make_to_spill() and the destructor one; the rest any. Lifetime: the
// destructor with nothing under way.
#pragma once

#include <unistd.h>

#include <functional>
#include <memory>
#include <string>

#include "platform/file.h"
#include "store/rbd/rbd_pool.h"

namespace spw::store {

class RbdImage {
 public:
  // Errors: a sentence with the address.
  static Result<std::unique_ptr<RbdImage>> open(const Librbd& lib, const RbdAddress& address);
  // A new one in the address's pool. `announced`: called with its name before it exists; false: nobody else sees to
  // what is left behind in the pool.
  using Announced = std::function<bool(const std::string& name)>;
  static Result<std::unique_ptr<RbdImage>> make_to_spill(const Librbd& lib, const RbdAddress& address,
                                                         const Announced& announced);
  ~RbdImage();

  const Librbd& lib() const { return lib_; }
  rbd_image_t get() const { return image_; }
  const RbdAddress& address() const { return address_; }
  // For messages: the address without parameters, and the name of an image that was made.
  std::string text() const;
  uint64_t size_bytes() const { return size_bytes_; }
  uint64_t object_bytes() const { return object_bytes_; }

 private:
  RbdImage(const Librbd& lib, const RbdAddress& address) : lib_(lib), address_(address) {}
  Status open_here();
  Status make_here(const Announced& announced);
  Status make_anew();
  Status connect();
  Status open_image();
  Status read_facts();
  Status lock();
  Status acquire_lock();
  std::string owner() const;
  bool was_of_this_scope(const std::string& owner) const;
  void close_here();

  const Librbd lib_;
  const RbdAddress address_;
  const int process_ = ::getpid();  // whose threads librados has
  std::unique_ptr<RbdPool> pool_;
  platform::File claim_;  // of the image on this machine
  std::string name_;
  bool is_made_ = false;  // here
  rbd_image_t image_ = nullptr;
  uint64_t size_bytes_ = 0;
  uint64_t object_bytes_ = 0;
};

}  // namespace spw::store
