#include "cache/frame_pool/pool_frames.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/units.h"
#include "cache/partition_map.h"
#include "platform/time.h"

namespace spw::cache {

namespace {
constexpr unsigned kPieceShift = std::countr_zero(kHugePageBytes);
}  // namespace

Result<std::unique_ptr<PoolFrames>> PoolFrames::create(uint32_t frame_count, unsigned block_shift, bool huge,
                                                       uint32_t staging_runs) {
  uint64_t bytes = static_cast<uint64_t>(frame_count) << block_shift;
  auto file = platform::create_memory_file("spillway-frames", bytes);
  if (!file) return file.status();
  auto mapping = platform::map_file(*file, 0, bytes, platform::Protection::kReadWrite, kHugePageBytes);
  if (!mapping) return mapping.status();
  // Shared memory would let a forked child write into its parent's blocks.
  if (Status status = platform::advise(mapping->data(), bytes, platform::Advice::kDontFork); !status)
    return status;
  return std::unique_ptr<PoolFrames>(
      new PoolFrames(std::move(*file), std::move(*mapping), frame_count, block_shift, huge, staging_runs));
}

PoolFrames::PoolFrames(platform::File file, platform::Mapping mapping, uint32_t frame_count,
                       unsigned block_shift, bool huge, uint32_t staging_runs)
    : file_(std::move(file)),
      mapping_(std::move(mapping)),
      block_shift_(block_shift),
      huge_(huge),
      is_staged_(staging_runs > 0 && block_shift < kStagedShiftEnd),
      staging_(uint64_t{1} << block_shift, uint64_t{run_blocks_max(block_shift)} << block_shift,
               staging_runs),
      piece_used_(std::make_unique<Atomic<uint8_t>[]>((mapping_.bytes() >> kPieceShift) + 1)),
      frame_used_(std::make_unique<Atomic<uint8_t>[]>(frame_count)) {}

std::byte* PoolFrames::fill_address(Resident resident, std::byte* staging, size_t index) {
  if (staging) return staging + (index << block_shift_);
  use(resident.frame);
  return address_of(resident.frame);
}

void PoolFrames::install(std::span<const Resident> run, Contents contents, const std::byte* staging, bool) {
  if (contents == Contents::kFilled) return install_staged(run, staging);
  for (const Resident& resident : run) {
    bool zero_already = use(resident.frame);
    if (contents == Contents::kZeros && !zero_already)
      std::memset(address_of(resident.frame), 0, uint64_t{1} << block_shift_);
  }
}

void PoolFrames::install_staged(std::span<const Resident> run, const std::byte* staging) {
  if (!staging) return;  // it was read into its frame
  const size_t block_bytes = size_t{1} << block_shift_;
  for (const Resident& resident : run) {
    use(resident.frame);
    std::memcpy(address_of(resident.frame), staging, block_bytes);
    staging += block_bytes;
  }
}

bool PoolFrames::use(FrameId frame) {
  Atomic<uint8_t>& used = frame_used_[frame.value];
  if (used.load_relaxed() != 0) return false;
  used.store_relaxed(1);
  uint64_t piece = (static_cast<uint64_t>(frame.value) << block_shift_) >> kPieceShift;
  if (piece_used_[piece].load_relaxed() == 0) use_piece(piece, frame);
  return true;
}

// Other threads may use the piece meanwhile: the kernel keeps what they wrote.
void PoolFrames::use_piece(uint64_t piece, FrameId frame) {
  uint8_t unused = 0;
  if (!piece_used_[piece].cas_strong_acquire(unused, 1)) return;
  used_pieces_.fetch_add_relaxed(1);
  if (!huge_ || (piece + 1) << kPieceShift > mapping_.bytes()) return;
  if (uint32_t left = pause_left_.load_relaxed()) return pause_left_.store_relaxed(left - 1);
  const uint64_t start_ns = platform::monotonic_ns();
  if (!try_huge(piece, frame)) return;
  const bool slow = platform::monotonic_ns() - start_ns > kSlowCollapseNs;
  pause_.store_relaxed(slow ? std::clamp(2 * pause_.load_relaxed(), 1u, kCollapsePauseMax) : 0);
  pause_left_.store_relaxed(pause_.load_relaxed());
}

bool PoolFrames::try_huge(uint64_t piece, FrameId frame) {
  // The kernel collapses no piece without any page. The frame is the caller's, and still zero.
  *reinterpret_cast<volatile char*>(address_of(frame)) = 0;
  std::byte* start = mapping_.data() + (piece << kPieceShift);
  if (!platform::advise(start, kHugePageBytes, platform::Advice::kCollapse)) return false;
  huge_pieces_.fetch_add_relaxed(1);
  return true;
}

}  // namespace spw::cache
