// Where a partition's memory comes from. The translated engine reads and writes frames of a pool (pool_frames.h); the
// mapped engine keeps each block at its own address, where a fill is installed and a victim released.
//
// Life of a frame: [fill_address -> (contents arrive there)] -> install -> pinned data at placement() ->
//   [begin_writeback -> end_writeback]* -> release. fill_address only when contents are read from a store; a fill that
//   fails ends in release without an install.
// Threads: fill_address and install are called by the one thread that fills the frame; the others by the owner of the
//   frame's partition. Different frames: at the same time.
// Ordering: the caller orders install before every pin (pin word: end_filling release / try_pin acquire) and the last unpin
//   before release.
// Limits: memory handed out is block_bytes long and block_bytes aligned; never more than frame_count blocks in all.
#pragma once

#include <cstddef>
#include <span>

#include "base/ids.h"
#include "platform/file.h"

namespace spw::cache {

// How install() is to make the contents.
enum class Contents : uint8_t {
  kFilled,     // they are at fill_address
  kZeros,      // none yet: all zeros
  kArbitrary,  // the client overwrites all of them
};

struct Resident {
  FrameId frame;
  BlockId block;
};

class FrameSource {
 public:
  // Pinned data is at base + ((by_block ? block : frame) << block_shift).
  struct Placement {
    std::byte* base = nullptr;
    bool by_block = false;
  };

  virtual ~FrameSource() = default;
  virtual Placement placement() const = 0;
  virtual std::byte* fill_address(Resident resident) = 0;
  virtual void install(Resident resident, Contents contents) = 0;
  // Where the writeback reads from. Until end_writeback, clients' stores may go on, but each block that is stored to
  // after begin_writeback is marked dirty again by whoever stores.
  virtual const std::byte* begin_writeback(Resident resident) = 0;
  virtual void end_writeback(Resident resident) = 0;
  // The victims' contents are not needed any more; their words are free already.
  virtual void release(std::span<const Resident> victims) = 0;
  // The memory file behind the frames, where frame f stands at f << block_shift; nullptr: there is none.
  virtual const platform::File* file() const { return nullptr; }
  // Victims that are best released in one call.
  virtual size_t release_batch_max() const = 0;
};

}  // namespace spw::cache
