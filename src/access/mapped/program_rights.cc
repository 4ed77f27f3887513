#include "access/mapped/program_rights.h"

#include <sys/mman.h>

#include <cerrno>

#include "platform/raw_calls.h"

namespace spw::access {

void ProgramRights::copy(const ProgramRights& other) {
  std::scoped_lock lock(mutex_, other.mutex_);
  rights_.clear();
  (void)other.rights_.for_each(0, UINTPTR_MAX, [&](uintptr_t begin, uintptr_t end, int rights) {
    rights_.set(begin, end, rights);
    return true;
  });
  any_.store_release(!rights_.is_empty());
}

void ProgramRights::set(uintptr_t begin, uintptr_t end, int rights) {
  std::lock_guard lock(mutex_);
  rights_.set(begin, end, rights);
  any_.store_release(!rights_.is_empty());
}

int ProgramRights::at(uintptr_t address) const {
  if (!any()) return kUsual;
  std::lock_guard lock(mutex_);
  return rights_.at(address);
}

int ProgramRights::at(uintptr_t begin, uintptr_t* end) const {
  if (!any()) return kUsual;
  std::lock_guard lock(mutex_);
  return rights_.at(begin, end);
}

// As the kernel has it: what may be stored to may be read.
bool ProgramRights::allow(uintptr_t address, bool is_store) const {
  const int rights = at(address);
  return (rights & (is_store ? PROT_WRITE : PROT_READ | PROT_WRITE)) != 0;
}

bool ProgramRights::allow_reads(uintptr_t begin, uintptr_t end) const {
  fence_seq_cst();
  if (!any()) [[likely]]
    return true;
  return for_each(begin, end, [](uintptr_t, uintptr_t, int rights) { return (rights & PROT_READ) != 0; });
}

Status ProgramRights::give(uintptr_t begin, uintptr_t end, int most) const {
  if (!any()) return {};
  const bool is_done = for_each(begin, end, [&](uintptr_t from, uintptr_t to, int rights) {
    return rights == kUsual ||
           platform::raw::mprotect(reinterpret_cast<void*>(from), to - from, rights & most) == 0;
  });
  return is_done ? Status() : Status(errno, "cannot give memory the access rights that the program chose");
}

}  // namespace spw::access
