#include "store/checked_store.h"

namespace spw::store {

class CheckedStore::Queue final : public QueueAround {
 public:
  Queue(CheckedStore& store, std::unique_ptr<IoQueue> device)
      : QueueAround(std::move(device)), store_(store) {}

  // One that is not taken comes again.
  size_t enqueue(std::span<Request* const> requests) override {
    const size_t room = std::min(requests.size(), depth() - in_flight());
    for (const Request* request : requests.first(room)) store_.before(*request);
    return device().enqueue(requests.first(room));
  }
  size_t reap(std::span<Completion> out) override {
    const size_t count = device().reap(out);
    for (Completion& done : out.first(count))
      if (done.error == 0 && done.request->op == Op::kRead) done.error = store_.after_read(*done.request);
    return count;
  }

 private:
  CheckedStore& store_;
};

Result<std::unique_ptr<Store>> CheckedStore::around(std::unique_ptr<Store> device) {
  std::unique_ptr<CheckedStore> store(new CheckedStore(std::move(device)));
  if (Status status = store->sums_.allocate(store->size_bytes()); !status) return status;
  return std::unique_ptr<Store>(std::move(store));
}

Result<std::unique_ptr<IoQueue>> CheckedStore::open_queue(size_t depth) {
  auto queue = device().open_queue(depth);
  if (!queue) return queue;
  return std::unique_ptr<IoQueue>(std::make_unique<Queue>(*this, std::move(*queue)));
}

void CheckedStore::before(const Request& request) {
  if (request.op == Op::kRead) sums_.prefetch(request.offset_bytes);
  if (request.op == Op::kWrite) {
    if (is_of_whole_pages(request))
      sums_.note(request);
    else if (request.segment_count <= kSegmentsMax)
      sums_.forget(round_down(request.offset_bytes, PageSums::kPageBytes),
                   request.bytes() + 2 * PageSums::kPageBytes);
  }
  if (request.op == Op::kDiscard) sums_.forget(request.offset_bytes, request.discard_bytes);
}

bool CheckedStore::fits(const Request& request) {
  return !is_of_whole_pages(request) || sums_.are_as_written(request);
}

Status CheckedStore::transfer(Request& request) {
  before(request);
  return transfer_through(request);
}

}  // namespace spw::store
