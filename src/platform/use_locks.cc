#include "platform/use_locks.h"

#include <algorithm>
#include <cerrno>

#include "base/atomic.h"
#include "base/units.h"

namespace spw::platform {

namespace {

Status lock_failed() { return Status(errno, "cannot lock what forked processes share"); }

}  // namespace

Result<UseLocks> UseLocks::create() {
  UseLocks locks;
  auto file = create_memory_file("spillway-uses", kMmuPageBytes);
  if (!file) return file.status();
  auto shared = map_file(*file, 0, kMmuPageBytes, Protection::kReadWrite);
  if (!shared) return shared.status();
  locks.file_ = std::move(*file);
  locks.last_id_ = std::move(*shared);
  if (auto child = locks.for_child(); !child) return child.status();
  return locks;
}

Result<UseLocks> UseLocks::for_child() const {
  UseLocks child;
  auto file = open_again(file_);
  if (!file) return file.status();
  child.file_ = std::move(*file);
  for (const uint64_t id : used_)
    if (Status status = child.use(id); !status) return status;
  return child;
}

void UseLocks::become(UseLocks own) {
  file_ = std::move(own.file_);
  used_ = std::move(own.used_);
}

uint64_t UseLocks::new_id() {
  return reinterpret_cast<Atomic<uint64_t>*>(last_id_.data())->fetch_add_relaxed(1) + 1;
}

Status UseLocks::use(uint64_t id) {
  if (!lock_byte(file_, id, ByteLock::kShared)) return lock_failed();
  used_.push_back(id);
  return {};
}

void UseLocks::end_use(uint64_t id) {
  lock_byte(file_, id, ByteLock::kNone);
  std::erase(used_, id);
}

// A lock is made another one in one step.
bool UseLocks::is_only_user(uint64_t id) const {
  if (!lock_byte(file_, id, ByteLock::kExclusive)) return false;
  lock_byte(file_, id, ByteLock::kShared);
  return true;
}

}  // namespace spw::platform
