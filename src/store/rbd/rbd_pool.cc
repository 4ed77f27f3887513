#include "store/rbd/rbd_pool.h"

#include <array>
#include <cstring>

#include "base/units.h"
#include "platform/device_use.h"
#include "platform/thread.h"

namespace spw::store {

namespace {

constexpr size_t kFsidBytes = 64;
// Whom it has shut out the cluster remembers for as long as it does by itself: an hour.
constexpr uint32_t kShutOutSecondsDefault = 0;

}  // namespace

Status RbdPool::here(const std::function<Status()>& work) {
  Status status;
  auto thread = platform::Thread::start([&] { status = work(); });
  if (!thread) return thread.status();
  thread->join();
  return status;
}

Status RbdPool::refused(int error, const std::string& why) const {
  return Status::sentence(error, address_.text + ": " + why);
}

Result<std::unique_ptr<RbdPool>> RbdPool::connect(const Librbd& lib, const RbdAddress& address) {
  std::unique_ptr<RbdPool> made(new RbdPool(lib, address));
  if (Status status = made->connect_here(); !status) return status;
  return made;
}

RbdPool::~RbdPool() {
  if (pool_ != nullptr) lib_.rados.ioctx_destroy(pool_);
  if (is_client_) lib_.rados.shutdown(cluster_);
}

Status RbdPool::connect_here() {
  if (const int error = -lib_.rados.create(&cluster_, address_.id.c_str()); error != 0)
    return refused(error, std::string("no client of a cluster can be made: ") + std::strerror(error));
  is_client_ = true;
  if (Status status = configure(); !status) return status;
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

Status RbdPool::configure() {
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
  return Status::ok();
}

uint64_t RbdPool::free_bytes() const {
  rados_cluster_stat_t stat{};
  return lib_.rados.cluster_stat(cluster_, &stat) == 0 ? stat.kb_avail * kKiB : 0;
}

Result<platform::File> RbdPool::claim(const std::string& image) const {
  std::array<char, kFsidBytes> fsid{};
  (void)lib_.rados.cluster_fsid(cluster_, fsid.data(), fsid.size());
  return platform::claim_name(std::string("rbd:") + fsid.data() + "/" + address_.pool + "/" + image);
}

int RbdPool::shut_out(char* client_address) const {
  return -lib_.rados.blocklist_add(cluster_, client_address, kShutOutSecondsDefault);
}

}  // namespace spw::store
