#include "access/mapped/userfault_pages.h"

#include "platform/memory.h"

namespace spw::access {

using platform::Protection;

Result<std::unique_ptr<PlacedPages>> UserFaultPages::create(const platform::UserFault& faults,
                                                            std::byte* base, uint64_t bytes) {
  if (Status s = platform::protect(base, bytes, Protection::kReadWrite); !s) return s;
  if (Status s = faults.register_range(base, bytes); !s) return s;
  if (Status s = faults.unregister_range(base, bytes); !s) return s;
  if (Status s = platform::protect(base, bytes, Protection::kNone); !s) return s;
  return std::unique_ptr<PlacedPages>(new UserFaultPages(faults, base, bytes));
}

// Live ranges keep the access rights they have, which the program may have chosen.
Status UserFaultPages::begin(uint64_t used_bytes) {
  if (Status s = faults_.register_range(base_, bytes_); !s) return s;
  return platform::protect(base_ + used_bytes, bytes_ - used_bytes, Protection::kReadWrite);
}

Status UserFaultPages::renew(std::byte* address, uint64_t bytes) {
  if (Status s = faults_.register_range(address, bytes); !s) return s;
  return platform::protect(address, bytes, Protection::kReadWrite);
}

}  // namespace spw::access
