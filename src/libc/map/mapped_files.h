// Which parts of which files are mapped shared and managed, so that a second mapping that could differ is refused.
//
// Threads: any (one mutex). Limits: none; one entry a shared file mapping.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "base/atomic.h"

namespace spw::libc {

class MappedFiles {
 public:
  struct Part {
    dev_t device;
    ino_t inode;
    uint64_t begin;
    uint64_t end;
    bool writable;
    uintptr_t address;
  };

  // False when a writable mapping would overlap another, or this writable one would.
  bool add(const Part& part);
  // [address, address + bytes) is no longer mapped.
  void remove(uintptr_t address, uint64_t bytes);
  // What is mapped in [from, from + old_bytes), of a part or all of it, stands at `to` from now on, with `bytes` bytes.
  void move(uintptr_t from, uint64_t old_bytes, uintptr_t to, uint64_t bytes);
  // What of [begin, end) of the file is mapped to be written to, each cut to that; addresses follow.
  std::vector<Part> written_in(dev_t device, ino_t inode, uint64_t begin, uint64_t end);
  // Those are mapped until visit() has returned: whoever unmaps removes them first, and waits.
  template <class Visit>
  void visit_written_in(dev_t device, ino_t inode, uint64_t begin, uint64_t end, Visit visit) {
    std::lock_guard lock(mutex_);
    for (const Part& part : found_written(device, inode, begin, end)) visit(part);
  }
  // The process that has mapped one for writing; 0: none is.
  pid_t writer() const { return writer_.load_acquire(); }
  // Whether any part ever was the kernel's.
  bool has_unmanaged() const { return has_unmanaged_.load_relaxed(); }
  // Around a fork.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  void cut_out(uintptr_t address, uint64_t bytes);
  std::vector<Part> found_written(dev_t device, ino_t inode, uint64_t begin, uint64_t end) const;

  std::mutex mutex_;
  std::vector<Part> parts_;
  Atomic<pid_t> writer_{0};
  Atomic<bool> has_unmanaged_{false};
};

// Those of the process.
MappedFiles& mapped_files();

}  // namespace spw::libc
