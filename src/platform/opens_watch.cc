#include "platform/opens_watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "platform/own_descriptors.h"

namespace spw::platform {

namespace {

// Of Linux 6.5: the handle as fanotify has it, also where it can open nothing.
constexpr int kHandleFid = 0x200;

struct Handle {
  file_handle head;
  std::array<unsigned char, MAX_HANDLE_SZ> bytes;
};

std::string key_of(int type, const unsigned char* bytes, unsigned count) {
  std::string key(reinterpret_cast<const char*>(&type), sizeof(type));
  return key.append(reinterpret_cast<const char*>(bytes), count);
}

Result<std::string> handle_of(int fd) {
  Handle handle;
  for (const int flags : {AT_EMPTY_PATH | kHandleFid, AT_EMPTY_PATH}) {
    handle.head.handle_bytes = MAX_HANDLE_SZ;
    int mount;
    if (::name_to_handle_at(fd, "", &handle.head, &mount, flags) == 0)
      return key_of(handle.head.handle_type, handle.head.f_handle, handle.head.handle_bytes);
    if (errno != EINVAL) break;
  }
  return Status(errno, "the file has no handle");
}

// Events stand one behind the other, at addresses of any alignment.
template <class Struct>
Struct copied(const char* from) {
  Struct copy;
  memcpy(&copy, from, sizeof(copy));
  return copy;
}

// What the event, of which `at` is the place, says of its file; nothing if it does not.
std::optional<std::string> handle_in(const fanotify_event_metadata& event, const char* at) {
  constexpr size_t kHandleAt = offsetof(fanotify_event_info_fid, handle);
  if (event.event_len < event.metadata_len + kHandleAt + sizeof(file_handle)) return std::nullopt;
  const char* info = at + event.metadata_len;
  if (copied<fanotify_event_info_header>(info).info_type != FAN_EVENT_INFO_TYPE_FID) return std::nullopt;
  const auto head = copied<file_handle>(info + kHandleAt);
  if (head.handle_bytes > event.event_len - event.metadata_len - kHandleAt - sizeof(head))
    return std::nullopt;
  const auto* bytes = reinterpret_cast<const unsigned char*>(info) + kHandleAt + sizeof(head);
  return key_of(head.handle_type, bytes, head.handle_bytes);
}

}  // namespace

// The signal that tells a holder of a lease that somebody wants the file would end the process; SIGURG is ignored by
// those who know nothing of it.
Openers openers_of(int fd, bool is_new) {
  const int saved_errno = errno;
  const int old_signal = is_new ? 0 : ::fcntl(fd, F_GETSIG);
  const int old_owner = is_new ? 0 : ::fcntl(fd, F_GETOWN);
  Openers found = Openers::kUnknown;
  if (old_signal >= 0 && ::fcntl(fd, F_SETSIG, SIGURG) == 0) {
    bool is_reset = false;
    if (::fcntl(fd, F_SETLEASE, F_WRLCK) == 0) {
      found = Openers::kThisAlone;
      is_reset = ::fcntl(fd, F_SETLEASE, F_UNLCK) == 0;  // with the lease go the signal and its owner
    } else if (errno == EAGAIN) {
      found = Openers::kOthers;
    }
    if (old_owner != 0) (void)::fcntl(fd, F_SETOWN, old_owner);
    if (!is_reset || old_signal != 0) (void)::fcntl(fd, F_SETSIG, old_signal);
  }
  errno = saved_errno;
  return found;
}

namespace {
// Calls visit(descriptor, what it has open) for each of the process, as long as that says true.
template <class Visit>
void for_own_descriptors(Visit visit) {
  DIR* all = ::opendir("/proc/thread-self/fd");
  if (all == nullptr) return;
  for (bool goes_on = true; goes_on;) {
    const dirent* entry = ::readdir(all);
    if (entry == nullptr) break;
    const int one = ::atoi(entry->d_name);
    struct stat what;
    if (entry->d_name[0] != '.' && ::fstat(one, &what) == 0) goes_on = visit(one, what);
  }
  ::closedir(all);
}

// The same for those of this file: visit(descriptor).
template <class Visit>
void for_own_descriptors_of(uint64_t device, uint64_t inode, Visit visit) {
  for_own_descriptors([&](int fd, const struct stat& what) {
    return what.st_dev != device || what.st_ino != inode || visit(fd);
  });
}
}  // namespace

void for_program_files(const std::function<void(uint64_t device, uint64_t inode)>& visit) {
  for_own_descriptors([&](int fd, const struct stat& what) {
    if (S_ISREG(what.st_mode) && !is_own_descriptor(fd)) visit(what.st_dev, what.st_ino);
    return true;
  });
}

size_t own_descriptors_of(int fd) {
  struct stat wanted;
  if (::fstat(fd, &wanted) != 0) return 0;
  size_t count = 0;
  for_own_descriptors_of(wanted.st_dev, wanted.st_ino, [&](int) {
    ++count;
    return true;
  });
  return count;
}

size_t program_descriptors_of(uint64_t device, uint64_t inode) {
  size_t count = 0;
  for_own_descriptors_of(device, inode, [&](int fd) {
    count += !is_own_descriptor(fd);
    return true;
  });
  return count;
}

int own_descriptor_of(uint64_t device, uint64_t inode) {
  int found = -1;
  for_own_descriptors_of(device, inode, [&](int fd) {
    found = fd;
    return false;
  });
  return found;
}

// A descriptor of this process may be gone between the two questions, so they are asked again.
Openers other_openers_of(int fd, bool is_new) {
  constexpr int kTries = 4;
  for (int tries = 0; tries < kTries; ++tries) {
    const Openers found = openers_of(fd, is_new);
    if (found != Openers::kOthers) return found;
    if (own_descriptors_of(fd) > 1) return Openers::kUnknown;
  }
  return Openers::kOthers;
}

Result<std::unique_ptr<OpensWatch>> OpensWatch::create() {
  const int fd =
      ::fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_FID, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Status(errno, "cannot watch who opens files");
  return std::unique_ptr<OpensWatch>(new OpensWatch(File(fd)));
}

Status OpensWatch::add(int fd, uint64_t number) {
  auto handle = handle_of(fd);
  if (!handle) return handle.status();
  std::lock_guard lock(mutex_);
  if (::fanotify_mark(events_.fd(), FAN_MARK_ADD, FAN_OPEN, fd, nullptr) != 0)
    return Status(errno, "cannot watch who opens a file");
  by_handle_[*handle] = number;
  return {};
}

void OpensWatch::remove(int fd, uint64_t number) {
  std::lock_guard lock(mutex_);
  if (std::erase_if(by_handle_, [&](const auto& one) { return one.second == number; }) > 0)
    (void)::fanotify_mark(events_.fd(), FAN_MARK_REMOVE, FAN_OPEN, fd, nullptr);
}

std::set<uint64_t> OpensWatch::take_opened() {
  std::set<uint64_t> opened;
  std::array<char, 4096> room;
  const pid_t own = ::getpid();
  const int saved_errno = errno;
  std::lock_guard lock(mutex_);
  for (;;) {
    ssize_t left = ::read(events_.fd(), room.data(), room.size());
    if (left < 0 && errno == EINTR) continue;
    if (left <= 0) break;
    for (const char* at = room.data(); left >= static_cast<ssize_t>(sizeof(fanotify_event_metadata));) {
      const auto event = copied<fanotify_event_metadata>(at);
      if (event.event_len < sizeof(event) || event.event_len > left) break;
      if ((event.mask & FAN_Q_OVERFLOW) != 0)  // it may be any
        for (const auto& [handle, number] : by_handle_) opened.insert(number);
      const auto handle = event.pid == own ? std::nullopt : handle_in(event, at);
      if (handle)
        if (const auto found = by_handle_.find(*handle); found != by_handle_.end())
          opened.insert(found->second);
      at += event.event_len;
      left -= event.event_len;
    }
  }
  errno = saved_errno;
  return opened;
}

}  // namespace spw::platform
