#include "store/rbd/rbd_image.h"

#include <unistd.h>

#include <array>
#include <cstring>

#include "platform/device_use.h"
#include "platform/thread.h"

namespace spw::store {

namespace {

// In the image's metadata: who had its lock last, and where that process ran (platform::claim_scope()).
constexpr const char* kOwnerKey = "spillway.owner";
constexpr size_t kTextBytesMax = 256;

}  // namespace

Status RbdImage::refused(int error, const std::string& why) const {
  return Status::sentence(error, address_.text + ": " + why);
}

Result<std::unique_ptr<RbdImage>> RbdImage::open(const Librbd& lib, const RbdAddress& address) {
  std::unique_ptr<RbdImage> made(new RbdImage(lib, address));
  Status status;
  auto opener = platform::Thread::start([&] { status = made->open_here(); });
  if (!opener) return opener.status();
  opener->join();
  if (!status) return status;
  return made;
}

RbdImage::~RbdImage() {
  if (::getpid() != process_) return;
  auto closer = platform::Thread::start([this] { close_here(); });
  if (closer) closer->join();
}

void RbdImage::close_here() {
  if (image_ != nullptr) lib_.rbd.close(image_);
  if (pool_ != nullptr) lib_.rados.ioctx_destroy(pool_);
  if (connected_) lib_.rados.shutdown(cluster_);
}

Status RbdImage::open_here() {
  if (Status status = connect(); !status) return status;
  if (Status status = open_image(); !status) return status;
  return address_.read_only ? Status::ok() : lock();
}

Status RbdImage::connect() {
  if (const int error = -lib_.rados.create(&cluster_, address_.id.c_str()); error != 0)
    return refused(error, std::string("no client of a cluster can be made: ") + std::strerror(error));
  connected_ = true;  // from here on there is something to shut down
  const char* const conf = address_.conf.empty() ? nullptr : address_.conf.c_str();
  if (const int error = -lib_.rados.conf_read_file(cluster_, conf); error != 0)
    return refused(error,
                   (conf != nullptr ? "the cluster's configuration " + address_.conf + " cannot be read"
                                    : "no configuration of a Ceph cluster is in the usual places") +
                       ": " + std::strerror(error) + "; name it with conf=FILE behind a ?");
  (void)lib_.rados.conf_parse_env(cluster_, nullptr);
  const std::string seconds = std::to_string(address_.timeout_seconds);
  const std::pair<const char*, const char*> settings[] = {
      {"client_mount_timeout", seconds.c_str()},
      {"rados_mon_op_timeout", seconds.c_str()},
      {"rados_osd_op_timeout", seconds.c_str()},
      // What is cached here has to be within the cap.
      {"rbd_cache", "false"},
      // What a thread of the messenger has freed stays its own, and is as much for each.
      {"ms_async_op_threads", "1"},
      // What standard error and the disk get is the program's affair.
      {"log_to_stderr", "false"},
      {"err_to_stderr", "false"},
      {"log_file", ""},
      {"admin_socket", ""}};
  for (const auto& [name, value] : settings)
    if (const int error = -lib_.rados.conf_set(cluster_, name, value); error != 0)
      return refused(error, std::string("this librados has no setting ") + name);
  if (const int error = -lib_.rados.connect(cluster_); error != 0)
    return refused(error, "the cluster cannot be connected to as client." + address_.id + " (" +
                              std::strerror(error) +
                              "); see that its monitors run, and that the client has a key in a keyring");
  if (const int error = -lib_.rados.ioctx_create(cluster_, address_.pool.c_str(), &pool_); error != 0)
    return refused(error, error == ENOENT ? "the cluster has no pool " + address_.pool
                                          : std::string("the pool cannot be used: ") + std::strerror(error));
  // A full pool is an error of the request, not a wait for room.
  lib_.rados.set_pool_full_try(pool_);
  return Status::ok();
}

Status RbdImage::open_image() {
  const auto open = address_.read_only ? lib_.rbd.open_read_only : lib_.rbd.open;
  if (const int error = -open(pool_, address_.image.c_str(), &image_, nullptr); error != 0) {
    image_ = nullptr;
    if (error == ENOENT)
      return refused(error, "the pool has no such image; make one: rbd create " + address_.pool + "/" +
                                address_.image + " --size SIZE");
    return refused(error, std::string("the image cannot be opened: ") + std::strerror(error) +
                              (error == EPERM ? " (to be read only, say mode=read)" : ""));
  }
  rbd_image_info_t info;
  if (const int error = -lib_.rbd.stat(image_, &info, sizeof info); error != 0)
    return refused(error, std::string("the image does not tell its size: ") + std::strerror(error));
  size_bytes_ = info.size;
  object_bytes_ = info.obj_size;
  return size_bytes_ > 0 ? Status::ok() : refused(EINVAL, "the image is empty");
}

// Who has the lock, as Ceph names clients; "" if nobody has.
std::string RbdImage::owner() const {
  rbd_lock_mode_t mode{};
  std::array<char*, 8> owners{};
  size_t count = owners.size();
  if (lib_.rbd.lock_get_owners(image_, &mode, owners.data(), &count) != 0 || count == 0) return "";
  std::string first = owners[0];
  lib_.rbd.lock_get_owners_cleanup(owners.data(), count);
  return first;
}

// With the claim on the image, no other process in this scope uses it.
bool RbdImage::was_of_this_scope(const std::string& owner) const {
  std::array<char, kTextBytesMax> text{};
  size_t bytes = text.size() - 1;
  return lib_.rbd.metadata_get(image_, kOwnerKey, text.data(), &bytes) == 0 &&
         owner + " " + platform::claim_scope() == text.data();
}

Status RbdImage::lock() {
  uint64_t features = 0;
  if (const int error = -lib_.rbd.get_features(image_, &features); error != 0)
    return refused(error, std::string("the image does not tell its features: ") + std::strerror(error));
  if ((features & RBD_FEATURE_EXCLUSIVE_LOCK) == 0)
    return refused(EINVAL, "the image has no lock; give it one: rbd feature enable " + address_.pool + "/" +
                               address_.image + " exclusive-lock");
  std::array<char, kTextBytesMax> fsid{};
  (void)lib_.rados.cluster_fsid(cluster_, fsid.data(), fsid.size());
  auto claim =
      platform::claim_name(std::string("rbd:") + fsid.data() + "/" + address_.pool + "/" + address_.image);
  if (!claim)
    return refused(EBUSY,
                   std::string(claim.status().context()) +
                       ", and one client at a time can write to it: end that use, or read it with mode=read");
  claim_ = std::move(*claim);
  return acquire_lock();
}

Status RbdImage::acquire_lock() {
  if (const std::string before = owner(); !before.empty() && was_of_this_scope(before))
    (void)lib_.rbd.lock_break(image_, RBD_LOCK_MODE_EXCLUSIVE, before.c_str());
  const int error = -lib_.rbd.lock_acquire(image_, RBD_LOCK_MODE_EXCLUSIVE);
  if (error == EROFS || error == EBUSY)
    return refused(EBUSY,
                   "the client at " + owner() +
                       " has its lock, and one at a time can write to it: end that use, or read it with "
                       "mode=read");
  if (error != 0) return refused(error, std::string("its lock cannot be had: ") + std::strerror(error));
  // Without it the next client waits until the cluster has noticed that this one is gone.
  (void)lib_.rbd.metadata_set(image_, kOwnerKey, (owner() + " " + platform::claim_scope()).c_str());
  return Status::ok();
}

}  // namespace spw::store
