#include "platform/device_use.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include "platform/mounts.h"
#include "platform/proc_text.h"
#include "platform/time.h"

namespace spw::platform {

namespace {

namespace fs = std::filesystem;

std::optional<struct stat> block_device(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || !S_ISBLK(info.st_mode)) return std::nullopt;
  return info;
}

std::string number_text(dev_t device) {
  return std::to_string(major(device)) + ":" + std::to_string(minor(device));
}

bool is_device(const std::string& path, dev_t device) {
  const auto info = block_device(path);
  return info && info->st_rdev == device;
}

std::string mount_of(dev_t device) {
  // btrfs gives what it mounts a number of its own.
  const auto mount = find_mount([device](const Mount& each) {
    return each.device == number_text(device) || is_device(each.source, device);
  });
  return mount ? mount->place : "";
}

bool is_swap(dev_t device) {
  std::ifstream swaps("/proc/swaps");
  for (std::string line; std::getline(swaps, line);)
    if (line.starts_with('/') && is_device(unescaped(line.substr(0, line.find_first_of(" \t"))), device))
      return true;
  return false;
}

// The process whose open description has a lock of the device's node.
uint64_t lock_holder(const struct stat& node) {
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    int process = 0;
    unsigned file_major = 0, file_minor = 0;
    uint64_t inode = 0;
    if (std::sscanf(line.c_str(), "%*s FLOCK %*s %*s %d %x:%x:%" SCNu64, &process, &file_major, &file_minor,
                    &inode) != 4)
      continue;
    if (process > 0 && inode == node.st_ino && makedev(file_major, file_minor) == node.st_dev)
      return static_cast<uint64_t>(process);
  }
  return 0;
}

std::string used_by(uint64_t process) {
  if (process == static_cast<uint64_t>(::getpid())) return "this process has it as its store already";
  auto name = read_small_file("/proc/" + std::to_string(process) + "/comm");
  if (!name)
    return "a child of process " + std::to_string(process) + ", which has ended, has it as its store";
  while (name->ends_with('\n')) name->pop_back();
  return "process " + std::to_string(process) + " (" + *name + ") has it as its store";
}

std::string first_name_in(const std::string& directory) {
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    return entry->path().filename().string();
  return "";
}

std::string use_by_kernel(dev_t device, const std::string& what) {
  if (const std::string place = mount_of(device); !place.empty()) return what + " is mounted at " + place;
  if (is_swap(device)) return "the kernel swaps to " + what;
  if (const std::string on = first_name_in("/sys/dev/block/" + number_text(device) + "/holders"); !on.empty())
    return on + " lies on " + what + " (a volume, RAID or encryption)";
  return "";
}

// Of a whole disk whose partitions are in use.
std::string use_of_partitions(dev_t disk) {
  std::error_code error;
  const std::string place = "/sys/dev/block/" + number_text(disk);
  for (fs::directory_iterator entry(place, error), end; !error && entry != end; entry.increment(error)) {
    if (!fs::exists(entry->path() / "partition", error)) continue;
    auto text = read_small_file((entry->path() / "dev").string());
    unsigned part_major = 0, part_minor = 0;
    if (!text || std::sscanf(text->c_str(), "%u:%u", &part_major, &part_minor) != 2) continue;
    const std::string name = "its partition " + entry->path().filename().string();
    if (std::string use = use_by_kernel(makedev(part_major, part_minor), name); !use.empty()) return use;
  }
  return "";
}

Status busy(const std::string& path) {
  const std::string user = device_user(path);
  return Status::sentence(EBUSY, user.empty() ? "something else uses it" : user);
}

}  // namespace

bool is_block_device(const std::string& path) { return block_device(path).has_value(); }

std::string device_user(const std::string& path) {
  const auto node = block_device(path);
  if (!node) return "";
  if (std::string use = use_by_kernel(node->st_rdev, "it"); !use.empty()) return use;
  if (std::string use = use_of_partitions(node->st_rdev); !use.empty()) return use;
  const uint64_t process = lock_holder(*node);
  return process == 0 ? "" : used_by(process);
}

Result<File> open_device_alone(const std::string& path) {
  // udev holds a lock for as long as it looks at a device that has changed.
  constexpr int kTries = 20;
  constexpr uint64_t kPauseNs = 50'000'000;
  auto file = open_file(path, O_RDWR | O_EXCL);
  if (!file) return file.status().error() == EBUSY ? busy(path) : file.status();
  for (int tries = 1;; ++tries) {
    Status status = lock_file(*file, Lock::kExclusive);
    if (status) return file;
    if (status.error() != EWOULDBLOCK) return status;
    if (tries == kTries) return busy(path);
    sleep_ns(kPauseNs);
  }
}

// A Unix socket of that name that listens; who connects to it learns who made it.
Result<File> claim_name(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // In the kernel's own space of names, which have a zero first and leave nothing behind.
  const int length = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "spillway-%016zx",
                                   std::hash<std::string>()(name));
  const auto bytes =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
  const auto* const as_address = reinterpret_cast<const sockaddr*>(&address);
  File socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return Status(errno, "cannot make a socket");
  if (::bind(socket.fd(), as_address, bytes) == 0) {
    if (::listen(socket.fd(), SOMAXCONN) != 0) return Status(errno, "cannot listen at a socket");
    return socket;
  }
  if (errno != EADDRINUSE) return Status(errno, "cannot name a socket");
  ucred holder{};
  socklen_t holder_bytes = sizeof holder;
  const bool is_known = ::connect(socket.fd(), as_address, bytes) == 0 &&
                        ::getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &holder, &holder_bytes) == 0;
  return Status::sentence(EBUSY, is_known && holder.pid > 0 ? used_by(static_cast<uint64_t>(holder.pid))
                                                            : "another process has it as its store");
}

std::string claim_scope() {
  auto boot = read_small_file("/proc/sys/kernel/random/boot_id");
  struct stat names{};
  const bool is_known = ::stat("/proc/self/ns/net", &names) == 0;
  return (boot ? boot->substr(0, boot->find('\n')) : "") + "/" + std::to_string(is_known ? names.st_ino : 0);
}

}  // namespace spw::platform
