// Named objects: where a program finds its structures when it opens a region again.
//
// Threads: any; who sets one name at a time is the program's to order, by a lock as for any object.
// Limits: kRootsMax names of at most kRootNameMax bytes.
#pragma once

#include <mutex>
#include <string_view>

#include "durable/slot.h"

namespace spw::durable {

class Roots {
 public:
  explicit Roots(const RegionView& region) : region_(region) {}
  // 0: there is none of the name.
  uint64_t get(std::string_view name) const;
  // As part of the slot's open section. `address` 0 removes the name. EINVAL (a name that cannot be), ENOSPC.
  Status set(Slot& slot, std::string_view name, uint64_t address, uint64_t stamp);

 private:
  Root* find(std::string_view name) const;

  const RegionView& region_;
  std::mutex mutex_;
};

}  // namespace spw::durable
