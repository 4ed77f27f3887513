// Where the bytes of a striped store lie: chunk c of the store is chunk c / members of member c % members.
//
// So a range of the store is one range of each member it touches, of whole chunks but for the first and the last.
// Invariant: chunk_bytes is a multiple of every member's alignment. Threads: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace spw::store {

struct Stripes {
  uint64_t chunk_bytes = 0;
  uint64_t members = 0;

  uint64_t member_of(uint64_t offset_bytes) const { return offset_bytes / chunk_bytes % members; }
  // The first byte of `member` that belongs to a byte of the store at or
  // behind `offset_bytes`: where [0, offset_bytes) of the store ends there.
  uint64_t offset_in_member(uint64_t member, uint64_t offset_bytes) const {
    uint64_t row_bytes = chunk_bytes * members;
    uint64_t in_row = offset_bytes % row_bytes;
    uint64_t before = member * chunk_bytes;
    uint64_t in_chunk = in_row <= before ? 0 : std::min(in_row - before, chunk_bytes);
    return offset_bytes / row_bytes * chunk_bytes + in_chunk;
  }
  // A store that ends with the last byte of its `member`'s first `bytes`; 0 for none.
  uint64_t end_with(uint64_t member, uint64_t bytes) const {
    if (bytes == 0) return 0;
    const uint64_t last = bytes - 1;
    return (last / chunk_bytes * members + member) * chunk_bytes + last % chunk_bytes + 1;
  }
  // From `offset_bytes` to the end of its chunk.
  uint64_t rest_of_chunk(uint64_t offset_bytes) const { return chunk_bytes - offset_bytes % chunk_bytes; }
};

}  // namespace spw::store
