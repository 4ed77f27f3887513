#include "store/growing_store.h"

#include <mutex>
#include <vector>

namespace spw::store {

namespace {

class Growths {
 public:
  Growth* take() {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return new Growth;
    Growth* growth = free_.back();
    free_.pop_back();
    return growth;
  }
  void give(Growth* growth) {
    std::lock_guard lock(mutex_);
    free_.push_back(growth);
  }

 private:
  std::mutex mutex_;
  std::vector<Growth*> free_;
};
Growths& growths() {
  static auto* growths = new Growths;
  return *growths;
}

}  // namespace

void GiveBackGrowth::operator()(Growth* growth) const { growths().give(growth); }

OwnGrowth take_growth(uint64_t size_bytes) {
  OwnGrowth growth(growths().take());
  growth->settle(size_bytes);
  return growth;
}

}  // namespace spw::store
