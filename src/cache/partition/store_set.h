// The stores that blocks have been written to, for a sync of everything.
//
// Threads: any. Changes once a store and partition, so one lock.
#pragma once

#include <algorithm>
#include <mutex>
#include <vector>

#include "store/store.h"

namespace spw::cache {

class StoreSet {
 public:
  void add(store::Store* store) {
    std::lock_guard lock(mutex_);
    if (std::find(stores_.begin(), stores_.end(), store) == stores_.end()) stores_.push_back(store);
  }
  void remove(store::Store* store) {
    std::lock_guard lock(mutex_);
    std::erase(stores_, store);
  }
  std::vector<store::Store*> list() {
    std::lock_guard lock(mutex_);
    return stores_;
  }

 private:
  std::mutex mutex_;
  std::vector<store::Store*> stores_;
};

}  // namespace spw::cache
