#include "access/mapped/userfault_pages.h"

#include <sys/mman.h>

#include <cerrno>

#include "base/check.h"
#include "base/units.h"
#include "platform/memory.h"
#include "platform/raw_calls.h"

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

Status UserFaultPages::begin_writeback(std::byte* address, uint64_t bytes) {
  if (Status s = faults_.write_protect(address, bytes, true); !s) return s;
  return program_rights_.any() ? let_read(address, bytes, PROT_READ) : Status();
}

void UserFaultPages::end_writeback(std::byte* address, uint64_t bytes) {
  if (program_rights_.any()) SPW_CHECK(let_read(address, bytes, 0).is_ok());
}

// What the program may not read of the range has the rights that it chose, and those that are added.
Status UserFaultPages::let_read(std::byte* address, uint64_t bytes, int added) const {
  std::lock_guard lock(rights_mutex_);
  const auto begin = reinterpret_cast<uintptr_t>(address);
  int error = 0;
  (void)program_rights_.for_each(begin, begin + bytes, [&](uintptr_t from, uintptr_t to, int rights) {
    if ((rights & PROT_READ) == 0 &&
        platform::raw::mprotect(reinterpret_cast<void*>(from), to - from, rights | added) != 0)
      error = errno;
    return error == 0;
  });
  return error == 0 ? Status() : Status(error, "cannot read a block that the program may not read");
}

int UserFaultPages::program_protects(uintptr_t address, uint64_t bytes, int protection) {
  std::lock_guard lock(rights_mutex_);
  if (platform::raw::mprotect(reinterpret_cast<void*>(address), bytes, protection) != 0) return errno;
  program_rights_.set(address, address + round_up(bytes, kMmuPageBytes), protection);
  return 0;
}

void UserFaultPages::forget_rights(uintptr_t begin, uintptr_t end) {
  if (!program_rights_.any()) return;
  std::lock_guard lock(rights_mutex_);
  (void)program_rights_.for_each(begin, end, [](uintptr_t from, uintptr_t to, int rights) {
    if (rights != ProgramRights::kUsual)
      SPW_CHECK(platform::protect(reinterpret_cast<void*>(from), to - from, Protection::kReadWrite).is_ok());
    return true;
  });
  program_rights_.set(begin, end, ProgramRights::kUsual);
}

}  // namespace spw::access
