// Named objects: where a program finds its structures when it opens a region again.
//
// Threads: any; who sets one name at a time is the program's to order, by a lock as for any object.
// Limits: kRootsMax names of at most kRootNameMax bytes.
#pragma once

#include <mutex>
#include <string_view>

#include "durable/sections.h"

namespace spw::durable {

class Roots {
 public:
  Roots(const RegionView& region, const Sections& sections) : region_(region), sections_(sections) {}
  // 0: there is none of the name.
  uint64_t get(std::string_view name) const;
  // As part of the slot's open section. `address` 0 removes the name. EINVAL (a name that cannot be), ENOSPC.
  Status set(Slot& slot, std::string_view name, uint64_t address, uint64_t stamp);

 private:
  Root* find(std::string_view name) const;
  Root* find_free() const;

  const RegionView& region_;
  const Sections& sections_;
  mutable std::mutex mutex_;
  // The section that emptied an entry: until it is history it may be undone, and the entry is nobody else's.
  Dependence emptied_by_[kRootsMax] = {};
};

}  // namespace spw::durable
