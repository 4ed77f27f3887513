#include "store/checked_store.h"

#include <algorithm>

namespace spw::store {

// Refused requests do not reach the device: they complete here, by the next reap().
class CheckedStore::Queue final : public QueueAround {
 public:
  Queue(CheckedStore& store, std::unique_ptr<IoQueue> device)
      : QueueAround(std::move(device)), store_(store) {}

  // One that is not taken comes again.
  size_t enqueue(std::span<Request* const> requests) override {
    const std::span<Request* const> all = requests.first(std::min(requests.size(), depth() - in_flight()));
    size_t taken = 0;
    while (taken < all.size()) {
      const auto rest = all.subspan(taken);
      if (is_refused(*rest.front())) {
        end_here(rest.front(), EINVAL);
        ++taken;
        continue;
      }
      const auto end = std::ranges::find_if(rest, [](const Request* each) { return is_refused(*each); });
      const auto run = rest.first(static_cast<size_t>(end - rest.begin()));
      for (const Request* request : run) store_.before(*request);
      const size_t by_device = device().enqueue(run);
      taken += by_device;
      if (by_device < run.size()) break;
    }
    return taken;
  }
  size_t reap(std::span<Completion> out) override {
    const size_t refused = reap_here(out);
    const std::span<Completion> rest = out.subspan(refused);
    const size_t count = device().reap(rest);
    for (Completion& done : rest.first(count))
      if (done.error == 0 && done.request->op == Op::kRead) done.error = store_.after_read(*done.request);
    return refused + count;
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
  if (request.op == Op::kWrite) sums_.note(request);
  if (request.op == Op::kDiscard) sums_.forget(request.offset_bytes, request.discard_bytes);
}

bool CheckedStore::fits(const Request& request) { return sums_.are_as_written(request); }

Status CheckedStore::transfer(Request& request) {
  if (is_refused(request)) return refused();
  before(request);
  return transfer_through(request);
}

}  // namespace spw::store
