// Who else has a file open: other processes, in whatever way they run.
//
// Now: by a lease for writing (fcntl(2), F_SETLEASE) that is taken for a moment. The kernel grants it for the only open
// description of a file, to the file's owner. From now on: by fanotify(7), which any process may ask about files that
// it has open; an event is there before the open() that it tells of returns.
//
// Threads: any. Lifetime: a forked child has no use of its parent's. Limits: the kernel's (fanotify/max_user_marks).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "base/status.h"
#include "platform/file.h"

namespace spw::platform {

enum class Openers : uint8_t { kThisAlone, kOthers, kUnknown };
// Whether any other open description of the file exists, in this process or another one. kUnknown: the file is
// another user's, or its filesystem knows no leases. No more than a signal that is ignored comes of it (SIGURG).
// `is_new`: it was just opened, so nobody has asked for signals of it yet.
Openers openers_of(int fd, bool is_new = false);
// How many descriptors of this process are of the same file.
size_t own_descriptors_of(int fd);
// Calls visit(device, inode) for each regular file that the program has open, for each of its descriptors.
void for_program_files(const std::function<void(uint64_t device, uint64_t inode)>& visit);
// How many of them are the program's, of this file.
size_t program_descriptors_of(uint64_t device, uint64_t inode);
// One of them all, of this file; -1: there is none.
int own_descriptor_of(uint64_t device, uint64_t inode);
// Whether another process has it open. kUnknown also where it may be this one, by another descriptor.
Openers other_openers_of(int fd, bool is_new = false);

class OpensWatch {
 public:
  // Errors: ENOSYS, EPERM (before Linux 5.13, or it is forbidden), EMFILE.
  static Result<std::unique_ptr<OpensWatch>> create();

  // Begins to watch what `fd` has open, under `number`, which is not of another file that is watched. Errors: where the
  // filesystem has no handles for its files (EOPNOTSUPP, ENODEV), or there are too many marks (ENOSPC).
  Status add(int fd, uint64_t number);
  void remove(int fd, uint64_t number);
  // Which of them other processes have opened since the last call.
  std::set<uint64_t> take_opened();
  // Readable when there is something to take.
  int fd() const { return events_.fd(); }

 private:
  explicit OpensWatch(File events) : events_(std::move(events)) {}

  File events_;
  std::mutex mutex_;                           // guards what follows
  std::map<std::string, uint64_t> by_handle_;  // of the kernel's, as its events have them
};

}  // namespace spw::platform
