#include "api/callback_store.h"

#include <algorithm>
#include <cstring>

#include "base/in_runtime.h"
#include "base/units.h"
#include "store/engine/transfer_queue.h"

namespace spw::api {

using store::Op;
using store::RawIo;

CallbackStore::CallbackStore(const spw_store& callbacks)
    : callbacks_(callbacks), workers_([this](const RawIo& io) { return run(io); }) {
  target_.size_bytes = callbacks.bytes;
  target_.alignment_bytes = kMmuPageBytes;
}

std::string CallbackStore::describe() const { return "the program's store of " + format_size(size_bytes()); }

Result<std::unique_ptr<store::IoQueue>> CallbackStore::open_queue(size_t depth) {
  auto engine = std::make_unique<store::ThreadEngine>(depth, workers_);
  return std::unique_ptr<store::IoQueue>(
      std::make_unique<store::TransferQueue>(std::move(engine), target_, depth));
}

Status CallbackStore::transfer(store::Request& request) {
  InRuntime guard;
  store::Progress progress;
  int error = store::transfer_now(progress, request, target_, [this](const RawIo& io) { return run(io); });
  return error == 0 ? Status::ok() : store::transfer_failed(error, request, describe());
}

// Whole segments, since a step may only stop at a multiple of the alignment.
int64_t CallbackStore::run(const RawIo& io) const {
  if (io.op == Op::kSync) return callbacks_.sync ? callbacks_.sync(callbacks_.context) : 0;
  if (io.op == Op::kDiscard) return -EOPNOTSUPP;
  uint64_t offset = io.offset_bytes;
  uint64_t left = io.bytes;
  for (uint32_t i = 0; i < io.segment_count && left > 0; ++i) {
    auto* data = static_cast<std::byte*>(io.segments[i].iov_base);
    const size_t bytes = std::min<uint64_t>(io.segments[i].iov_len, left);
    const int64_t error = io.op == Op::kRead ? read(data, bytes, offset) : write(data, bytes, offset);
    if (error < 0) return error;
    offset += bytes;
    left -= bytes;
  }
  return static_cast<int64_t>(io.bytes);
}

// 0 or a negative errno, as write().
int64_t CallbackStore::read(std::byte* data, size_t bytes, uint64_t offset_bytes) const {
  while (bytes > 0) {
    const int64_t moved = callbacks_.read(callbacks_.context, data, bytes, offset_bytes);
    if (moved < 0) return moved;
    if (static_cast<uint64_t>(moved) > bytes) return -EIO;  // more than there was room for
    if (moved == 0) {
      std::memset(data, 0, bytes);
      return 0;
    }
    data += moved;
    bytes -= static_cast<size_t>(moved);
    offset_bytes += static_cast<uint64_t>(moved);
  }
  return 0;
}

int64_t CallbackStore::write(const std::byte* data, size_t bytes, uint64_t offset_bytes) const {
  if (!callbacks_.write) return -EBADF;
  while (bytes > 0) {
    const int64_t moved = callbacks_.write(callbacks_.context, data, bytes, offset_bytes);
    if (moved < 0) return moved;
    if (moved == 0 || static_cast<uint64_t>(moved) > bytes) return -EIO;
    data += moved;
    bytes -= static_cast<size_t>(moved);
    offset_bytes += static_cast<uint64_t>(moved);
  }
  return 0;
}

}  // namespace spw::api
