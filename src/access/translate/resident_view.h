// The resident view: while all managed memory fits, blocks that are in use are mapped at their own addresses, too, and
// code runs in its plain version, without translations (abi/abi.h, "Versions").
//
// A fault on a block of a *window* (aligned, a group of the cache or less) maps the block, and with
// it what costs nothing. What was never written comes in writable, the window at once, whose pages
// get memory as they are touched: the kernel serves that without a lock that all threads share, where
// pages made ahead would make those wait that map other windows. What comes from a store is mapped
// read-only until the first store to it, first with few neighbours, then with all that are there.
//
//     active ──end(): memory no longer surely fits──▶ ended, for good
//
// When it ends, everything is unmapped and unpinned at once; plain code that still runs meets faults, which the alias
// table serves as it does those of foreign code.
// Invariants
//   block b is in the view  <=>  b's bit in its window is set; then the view holds one reference on its frame, and b's address is
//     mapped to that frame
//   b is mapped writable  =>  its frame was marked dirty after that reference was taken
//   a frame is unpinned only after its mapping was replaced by one without access
//   ended  =>  no bit is set, nor ever will be
// All of them under the lock of the window's shard, and active_ is cleared under every shard's lock, when all is
//   unmapped: who sees that it ended without a lock may map these addresses himself.
// Threads: any, in a SIGSEGV handler as well; one lock a partition of the cache, so that frames of a window are taken
//   side by side and the kernel can join their mappings. Locks are taken in the order of partitions. No code that holds
//   one touches managed addresses.
// Lifetime: the engine's. Limits: kViewMappingsShare.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/atomic.h"
#include "cache/cache.h"
#include "platform/file.h"

namespace spw::access {

// Mappings that the kernel does not join with their neighbours, and gaps between them, which count alike: so much of
// what a process may have (vm.max_map_count). A window takes one as a rule, so with the default of 65530 a view of some
// 12 GiB is possible; windows of which a part was touched take two or more.
inline constexpr uint64_t kViewMappingsParts = 3, kViewMappingsShare = 4;
inline constexpr uint64_t kViewWindowBytesMax = uint64_t{256} << 10;
// What comes with the first touch of a window that has contents.
inline constexpr unsigned kFirstTouchBlocks = 4;

class ResidentView {
 public:
  // `frames`: the memory file in which frame f stands at f << block_shift. `blocks` and it outlive this.
  ResidentView(cache::SharedCache& cache, cache::BlockSource& blocks, const platform::File& frames,
               unsigned block_shift);

  bool is_active() const { return active_.load_acquire(); }

  enum class Admission : uint8_t {
    kServed,
    kEnded,  // or the block belongs to no region: not served
    kFull,   // no more mappings: end the view
  };
  // Makes `address` accessible. An error is one of reading the block.
  // Waits for a frame where there is none, which whoever gets
  // Options::no_frame (cache/cache.h) has to answer with end().
  Result<Admission> admit(cache::Client& client, uintptr_t address, bool store);
  // Takes [first, first + count) out of the view: before the range is
  // given back, when it has no home any more, or flushed.
  Status withdraw(cache::Client& client, BlockId first, uint64_t count);
  Status end(cache::Client& client);

  // As many as the kernel has of it, at most.
  uint64_t mappings() const { return mappings_.load_relaxed(); }
  uint64_t metadata_bytes() const { return windows_.load_relaxed() * sizeof(Shard::Windows::value_type); }

 private:
  static constexpr unsigned kWindowBlocksMax = 64;

  struct Window {
    uint64_t mapped = 0;  // one bit a block
    uint64_t writable = 0;
    FrameId frames[kWindowBlocksMax];

    bool holds(unsigned index) const { return mapped >> index & 1; }
    bool is_writable(unsigned index) const { return writable >> index & 1; }
    // Whether the kernel has the block and the one before it, index - 1, in one mapping.
    bool joins(unsigned index) const {
      if (!holds(index) || !holds(index - 1)) return holds(index) == holds(index - 1);
      return frames[index].value == frames[index - 1].value + 1 &&
             is_writable(index) == is_writable(index - 1);
    }
    void add(unsigned index, FrameId frame, bool is_writable) {
      frames[index] = frame;
      mapped |= uint64_t{1} << index;
      if (is_writable) writable |= uint64_t{1} << index;
    }
  };
  struct alignas(64) Shard {
    using Windows = std::unordered_map<uint64_t, Window>;
    std::mutex mutex;
    Windows windows;  // by the number of their first block
  };

  uint64_t window_of(BlockId block) const { return block.value & ~uint64_t{window_blocks_ - 1}; }
  unsigned index_of(BlockId block) const { return static_cast<unsigned>(block.value & (window_blocks_ - 1)); }
  Shard& shard_of(BlockId block) { return shards_[partitions_.of(block).value]; }
  std::byte* address_of(uint64_t block) const;
  Admission admit_known(cache::Client& client, Window& window, BlockId block, bool store);
  void pin_neighbours(cache::Client& client, Window& window, BlockId block, bool is_zero);
  uint64_t mappings_of(const Window& window) const;
  // `mappings_before`: what mappings_of(window) was before it was changed.
  Admission map(uint64_t first_block, const Window& window, uint64_t bits, uint64_t mappings_before);
  bool map_run(uint64_t first_block, const Window& window, unsigned begin, unsigned end);
  void unpin(cache::Client& client, Window& window, uint64_t bits);

  cache::SharedCache& cache_;
  cache::BlockSource& blocks_;
  const platform::File& frames_;
  const unsigned block_shift_;
  const unsigned window_blocks_;
  const cache::PartitionMap partitions_;
  const uint64_t mappings_max_;
  std::unique_ptr<Shard[]> shards_;
  Atomic<bool> active_{true};
  Atomic<uint64_t> mappings_{0};
  Atomic<uint64_t> windows_{0};
};

}  // namespace spw::access
