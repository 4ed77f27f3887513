#include "access/mapped/program_rights.h"

#include <sys/mman.h>

#include <cerrno>
#include <iterator>
#include <utility>

#include "platform/raw_calls.h"

namespace spw::access {

void ProgramRights::copy(const ProgramRights& other) {
  std::scoped_lock lock(mutex_, other.mutex_);
  parts_ = other.parts_;
  any_.store_release(!parts_.empty());
}

void ProgramRights::set(uintptr_t begin, uintptr_t end, int rights) {
  std::lock_guard lock(mutex_);
  split(begin);
  split(end);
  parts_.erase(parts_.lower_bound(begin), parts_.lower_bound(end));
  if (rights != kUsual && begin < end) parts_.emplace(begin, Part{end, rights});
  any_.store_release(!parts_.empty());
}

// Afterwards no part reaches over `at`.
void ProgramRights::split(uintptr_t at) {
  const auto behind = parts_.lower_bound(at);
  if (behind == parts_.begin()) return;
  Part& part = std::prev(behind)->second;
  if (part.end > at) parts_.emplace(at, part).first->second.end = std::exchange(part.end, at);
}

int ProgramRights::at(uintptr_t address) const {
  if (!any()) return kUsual;
  std::lock_guard lock(mutex_);
  const auto part = parts_.upper_bound(address);
  if (part == parts_.begin() || std::prev(part)->second.end <= address) return kUsual;
  return std::prev(part)->second.rights;
}

// As the kernel has it: what may be stored to may be read.
bool ProgramRights::allow(uintptr_t address, bool is_store) const {
  const int rights = at(address);
  return (rights & (is_store ? PROT_WRITE : PROT_READ | PROT_WRITE)) != 0;
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
