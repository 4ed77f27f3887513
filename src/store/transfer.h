// A transfer of one piece of memory, done by the calling thread.
#pragma once

#include <cstddef>
#include <span>

#include "store/store.h"

namespace spw::store {

inline Status transfer(Store& store, Op op, uint64_t offset_bytes, std::span<std::byte> memory) {
  Request request;
  request.op = op;
  request.offset_bytes = offset_bytes;
  request.segment_count = 1;
  request.segments[0] = {memory.data(), memory.size()};
  return store.transfer(request);
}

}  // namespace spw::store
