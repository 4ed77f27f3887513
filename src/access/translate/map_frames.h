// Maps frames of the memory file at the addresses of their blocks, for code that does not translate.
//
// Threads: any; who maps an address knows that nobody else does. The
// mapping is left out of forked children, which have no managed memory.
#pragma once

#include "base/ids.h"
#include "platform/file.h"
#include "platform/memory.h"

namespace spw::access {

// `bytes` from `frame` on, which stands at frame << block_shift in `frames`.
inline Status map_frames(void* address, const platform::File& frames, FrameId frame, uint64_t bytes,
                         unsigned block_shift, bool writable) {
  const auto protection = writable ? platform::Protection::kReadWrite : platform::Protection::kRead;
  const uint64_t offset_bytes = uint64_t{frame.value} << block_shift;
  Status status = platform::map_file_at(address, frames, offset_bytes, bytes, protection);
  return status ? platform::advise(address, bytes, platform::Advice::kDontFork) : status;
}

}  // namespace spw::access
