#include "access/mapped/program_rights.h"

#include <algorithm>
#include <iterator>

namespace spw::access {

void ProgramRights::set(uintptr_t begin, uintptr_t end, int rights) {
  std::lock_guard lock(mutex_);
  auto part = parts_.lower_bound(begin);
  if (part != parts_.begin() && std::prev(part)->second.end > begin) {
    Part& before = std::prev(part)->second;
    const Part whole = before;
    before.end = begin;
    if (whole.end > end) part = parts_.emplace(end, whole).first;
  }
  while (part != parts_.end() && part->first < end) {
    const Part old = part->second;
    part = parts_.erase(part);
    if (old.end > end) part = parts_.emplace(end, old).first;
  }
  if (rights != kUsual && begin < end) parts_.emplace(begin, Part{end, rights});
  any_.store_release(!parts_.empty());
}

int ProgramRights::at(uintptr_t address) const {
  if (!any()) return kUsual;
  std::lock_guard lock(mutex_);
  const auto part = parts_.upper_bound(address);
  if (part == parts_.begin() || std::prev(part)->second.end <= address) return kUsual;
  return std::prev(part)->second.rights;
}

}  // namespace spw::access
