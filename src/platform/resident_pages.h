// Which pages of this process's private memory exist, in memory or swapped out: /proc/self/pagemap.
//
// Threads: any, at the same time. Lifetime: opened once, since /proc
// may be out of reach later. A forked child's answers are its parent's.
#pragma once

#include <span>

#include "platform/file.h"

namespace spw::platform {

class ResidentPages {
 public:
  // ENOENT, EACCES: no /proc, or not for us.
  static Result<ResidentPages> open();

  // exists[i]: of the page at `first`, page aligned, + i pages.
  Status read(const void* first, std::span<bool> exists) const;

 private:
  File file_;
};

}  // namespace spw::platform
