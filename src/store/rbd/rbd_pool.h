// A connection to a Ceph cluster and a pool of it: a client of its own, as which the cluster knows whoever uses it.
//
// librados has threads of its own. They are to be started and ended by threads of ours, whose signal mask they inherit:
// all blocked (here()). A forked child has none of them and must use nothing of it, nor close it.
//
// Time limits: each step waits for the cluster for the address's timeout at most, and then fails with ETIMEDOUT.
// Threads: connect() and the destructor one; the rest any. Lifetime: the destructor with none of its images open.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "platform/file.h"
#include "store/rbd/librbd.h"
#include "store/rbd/rbd_address.h"

namespace spw::store {

class RbdPool {
 public:
  // Errors: a sentence with the address.
  static Result<std::unique_ptr<RbdPool>> connect(const Librbd& lib, const RbdAddress& address);
  ~RbdPool();
  // Does `work` in a thread that librados' own may inherit from.
  static Status here(const std::function<Status()>& work);

  const Librbd& lib() const { return lib_; }
  rados_ioctx_t get() const { return pool_; }
  const RbdAddress& address() const { return address_; }
  // The number of this client; the cluster gives none twice.
  uint64_t client() const { return lib_.rados.get_instance_id(cluster_); }
  // What the cluster has free, copies not counted; 0 where it keeps no statistics.
  uint64_t free_bytes() const;
  // The image is one process's of this machine until the File is closed (platform::claim_name).
  Result<platform::File> claim(const std::string& image) const;
  // Nothing of that client is taken any more, were it still under way; its watches and locks are nobody's.
  int shut_out(char* client_address) const;
  Status refused(int error, const std::string& why) const;

 private:
  RbdPool(const Librbd& lib, const RbdAddress& address) : lib_(lib), address_(address) {}
  Status connect_here();
  Status configure();

  const Librbd lib_;
  const RbdAddress address_;
  rados_t cluster_ = nullptr;
  bool is_client_ = false;  // from then on there is something to shut down
  rados_ioctx_t pool_ = nullptr;
};

}  // namespace spw::store
