#include "access/mapped/program_rights.h"

#include <iterator>
#include <utility>

namespace spw::access {

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

}  // namespace spw::access
