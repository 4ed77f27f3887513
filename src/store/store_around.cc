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

Status StoreAround::transfer_through(Request& request) {
  Status status = device_->transfer(request);
  if (!status || request.op != Op::kRead) return status;
  const int error = after_read(request);
  return error == 0 ? Status::ok() : transfer_failed(error, request, describe());
}

}  // namespace spw::store
