// Why fills failed, for everybody who waited for them. Kept from the failure until the frame is dropped.
//
// Threads: any. Rarely used, so one lock. Limits: one entry a failed frame.
#pragma once

#include <mutex>
#include <string>
#include <unordered_map>

#include "base/ids.h"
#include "base/status.h"
#include "store/store.h"

namespace spw::cache {

inline Status fill_error(BlockId block, const store::Store& store, uint64_t offset_bytes, int error) {
  if (error == store::kNotAsWritten)
    return Status::sentence(error, "block " + std::to_string(block.value) + " was changed on " +
                                       store.describe_at(offset_bytes) + " at offset " +
                                       std::to_string(offset_bytes) +
                                       ": what is read there is not what was written (its checksum differs); "
                                       "something else has written there, or the device is failing");
  return Status(error, "cannot read block " + std::to_string(block.value) + " from " +
                           store.describe_at(offset_bytes) + " at offset " + std::to_string(offset_bytes));
}

class FillErrors {
 public:
  void put(FrameId frame, Status status) {
    std::lock_guard lock(mutex_);
    errors_.insert_or_assign(frame, std::move(status));
  }
  // Fine when there is none: the waiter should try for itself.
  Status get(FrameId frame) {
    std::lock_guard lock(mutex_);
    auto found = errors_.find(frame);
    return found == errors_.end() ? Status::ok() : found->second;
  }
  void drop(FrameId frame) {
    std::lock_guard lock(mutex_);
    errors_.erase(frame);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<FrameId, Status> errors_;
};

}  // namespace spw::cache
