#include "store/store_around.h"

#include "store/engine/progress.h"
#include "telemetry/counters.h"

namespace spw::store {

int StoreAround::after_read(Request& request) {
  if (fits(request)) return 0;
  telemetry::count(telemetry::Counter::checksum_failures);
  if (Status again = device_->transfer(request); !again) return again.error();
  return fits(request) ? 0 : kNotAsWritten;
}

bool StoreAround::is_refused(const Request& request) {
  return (request.op == Op::kRead || request.op == Op::kWrite) && !is_of_whole_pages(request);
}

Status StoreAround::refused() const {
  return Status::sentence(EINVAL, "a request of " + describe() + " is not of whole pages");
}

void QueueAround::end_here(Request* request, int error) {
  ended_here_.push_back({request, error});
  ended_here_count_.store_release(ended_here_.size());
  if (waiting_.fetch_add_acq_rel(0) > 0) device_->wake();
}

size_t QueueAround::reap_here(std::span<Completion> out) {
  const size_t count = std::min(out.size(), ended_here_.size());
  for (Completion& done : out.first(count)) {
    done = ended_here_.front();
    ended_here_.pop_front();
  }
  ended_here_count_.store_release(ended_here_.size());
  return count;
}

Status StoreAround::transfer_through(Request& request) {
  Status status = device_->transfer(request);
  if (!status || request.op != Op::kRead) return status;
  const int error = after_read(request);
  return error == 0 ? Status::ok() : transfer_failed(error, request, describe());
}

}  // namespace spw::store
