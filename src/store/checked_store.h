// A store that gives back what was written to it, or fails: a sum of every page is kept in this process's memory while
// the page is on the device, so that contents which are wrong, old, another place's, half written or gone are found
// when they are read. What differs is read once more, since the way from the device may have been at fault; if it
// still does, the request fails with kNotAsWritten.
//
// For what lives as long as the process: sums are in its memory, and nothing is added to what is on the device. Pages
// that were never written, or were discarded, are not compared.
// Threads, lifetime: as every store's. A request's contents may change while they are being written, as long as they
// are then written again before they are read (the cache leaves such a block dirty).
// Limits: requests of whole pages (PageSums::kPageBytes).
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "store/checked/page_sums.h"
#include "store/store.h"

namespace spw::store {

class CheckedStore final : public Store {
 public:
  static Result<std::unique_ptr<Store>> around(std::unique_ptr<Store> device);

  std::string describe() const override { return device_->describe(); }
  std::string describe_at(uint64_t offset_bytes) const override { return device_->describe_at(offset_bytes); }
  uint64_t size_bytes() const override { return device_->size_bytes(); }
  uint64_t alignment_bytes() const override {
    return std::max(PageSums::kPageBytes, device_->alignment_bytes());
  }
  const Atomic<uint64_t>* written_end() const override { return device_->written_end(); }
  Result<std::unique_ptr<IoQueue>> open_queue(size_t depth) override;
  bool is_short_lived() const override { return device_->is_short_lived(); }
  Status transfer(Request& request) override;
  Status reserve(uint64_t offset_bytes, uint64_t bytes) override {
    return device_->reserve(offset_bytes, bytes);
  }
  void in_child() override { device_->in_child(); }

 private:
  class Queue;

  explicit CheckedStore(std::unique_ptr<Store> device) : device_(std::move(device)) {}
  void before(const Request& request);
  // What a read that succeeded comes to: 0, or a positive errno.
  int after_read(Request& request);

  const std::unique_ptr<Store> device_;
  PageSums sums_;
};

}  // namespace spw::store
