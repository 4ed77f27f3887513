#include <algorithm>

#include "store/store.h"

namespace spw::store {

uint64_t Request::bytes() const {
  if (op == Op::kDiscard) return discard_bytes;
  if (op == Op::kSync) return 0;
  uint64_t sum = 0;
  size_t count = std::min<size_t>(segment_count, kSegmentsMax);
  for (size_t i = 0; i < count; ++i) sum += segments[i].iov_len;
  return sum;
}

std::string Store::describe_at(uint64_t) const { return describe(); }

}  // namespace spw::store
