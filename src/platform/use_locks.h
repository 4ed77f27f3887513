// Which of several processes, one forked from the other, use what: read locks on bytes of a memory file, which the
// kernel gives up when a process ends or executes another program, however it ends.
//
// An open file description is one process's. Whoever forks makes the child's (for_child()) before there is a child, so
// that no use is without a lock for an instant, and lets go of it afterwards; the child puts it in place of its own.
// Threads: new_id() any; the caller serialises the others.
// Limits: ids are never used twice: 2^63. A kernel without such locks (before 3.15), or a system without /proc:
// create() says so.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "platform/file.h"
#include "platform/memory.h"

namespace spw::platform {

class UseLocks {
 public:
  static Result<UseLocks> create();
  // With every use that this one has.
  Result<UseLocks> for_child() const;
  // In the child: `own` is what for_child() made.
  void become(UseLocks own);

  // Nobody's so far, in any of these processes.
  uint64_t new_id();
  Status use(uint64_t id);
  void end_use(uint64_t id);
  // Of an id in use.
  bool is_only_user(uint64_t id) const;

 private:
  File file_;
  Mapping last_id_;  // shared by all; a child's is inherited
  std::vector<uint64_t> used_;
};

}  // namespace spw::platform
