// A store that gives back what was written to it, or fails: a sum of every page is kept in this process's memory while
// the page is on the device, so that contents which are wrong, old, another place's, half written or gone are found
// when they are read. What differs is read once more, since the way from the device may have been at fault; if it
// still does, the request fails with kNotAsWritten.
//
// For what lives as long as the process: sums are in its memory, and nothing is added to what is on the device. Pages
// that were never written, or were discarded, are not compared.
// Threads, lifetime: as every store's. A request's contents may change while they are being written, as long as they
// are then written again before they are read (the cache leaves such a block dirty).
// Limits: requests of whole pages (PageSums::kPageBytes), at addresses of whole pages; others fail with EINVAL, as
// alignment_bytes() says.
#pragma once

#include <memory>

#include "store/checked/page_sums.h"
#include "store/store_around.h"

namespace spw::store {

class CheckedStore final : public StoreAround {
 public:
  static Result<std::unique_ptr<Store>> around(std::unique_ptr<Store> device);

  Result<std::unique_ptr<IoQueue>> open_queue(size_t depth) override;
  Status transfer(Request& request) override;

 private:
  class Queue;

  explicit CheckedStore(std::unique_ptr<Store> device) : StoreAround(std::move(device)) {}
  void before(const Request& request);
  bool fits(const Request& request) override;

  PageSums sums_;
};

}  // namespace spw::store
