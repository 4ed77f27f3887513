// Frames of the translated engine: one shared memory file, mapped once; frame f is at base + (f << block_shift).
//
// The file can be mapped a second time elsewhere (file()), so that code which was not instrumented sees the same page.
// Memory comes with the first use of a frame. Where huge pages are wanted and the kernel can, the 2 MiB piece around a
// frame is made a huge page at the piece's first use; where it cannot, small pages serve, and huge_pieces() tells.
// Where huge pages come slowly (kSlowCollapseNs: a virtual machine whose host has to find the memory first), most
// pieces stay small: after each slow one the pool waits for twice as many pieces before it tries again.
// Threads: see FrameSource. Limits: exactly frame_count << block_shift bytes, and staging_runs runs.
#pragma once

#include <memory>

#include "base/atomic.h"
#include "base/status.h"
#include "cache/frame_pool/frame_source.h"
#include "cache/frame_pool/staging.h"
#include "platform/file.h"
#include "platform/memory.h"

namespace spw::cache {

// Longer than this for 2 MiB, and small pages are the cheaper ones: 512 faults take about as long.
inline constexpr uint64_t kSlowCollapseNs = 1'000'000;
inline constexpr uint32_t kCollapsePauseMax = 256;

// Blocks of at least this size are read in place.
inline constexpr unsigned kStagedShiftEnd = 16;

class PoolFrames final : public FrameSource {
 public:
  // `staging_runs`: so many reads of neighbours at a time go through staging (for small blocks; 0: none).
  static Result<std::unique_ptr<PoolFrames>> create(uint32_t frame_count, unsigned block_shift, bool huge,
                                                    uint32_t staging_runs = 0);

  Placement placement() const override { return {nullptr, 0, mapping_.data(), nullptr}; }
  // A request of one piece, from a huge page, and a copy take less than one of many small pieces.
  StagingUse staging_use(BlockId, uint64_t count) const override {
    return count > 1 && is_staged_ ? StagingUse::kWanted : StagingUse::kNone;
  }
  std::byte* take_staging(Staging kind) override { return staging_.take(kind); }
  void give_back(Staging kind, std::byte* buffer) override { staging_.give_back(kind, buffer); }
  std::byte* fill_address(Resident resident, std::byte* staging, size_t index) override;
  void install(std::span<const Resident> run, Contents contents, const std::byte* staging,
               bool writable) override;
  void begin_writeback(std::span<const Resident>) override {}
  void end_writeback(Resident) override {}
  void release(std::span<const Resident>) override {}
  size_t release_batch_max() const override { return 1; }

  const platform::File* file() const override { return &file_; }
  uint64_t memory_file_bytes() const override { return platform::allocated_bytes(file_); }
  // Pieces of 2 MiB that came into use, and those of them the kernel made huge pages.
  uint32_t used_pieces() const { return used_pieces_.load_relaxed(); }
  uint32_t huge_pieces() const { return huge_pieces_.load_relaxed(); }

 private:
  PoolFrames(platform::File file, platform::Mapping mapping, uint32_t frame_count, unsigned block_shift,
             bool huge, uint32_t staging_runs);

  std::byte* address_of(FrameId frame) const {
    return mapping_.data() + (static_cast<uint64_t>(frame.value) << block_shift_);
  }
  void install_staged(std::span<const Resident> run, const std::byte* staging);
  // Notes that the frame is in use; true the first time, when its memory is still zero.
  bool use(FrameId frame);
  void use_piece(uint64_t piece, FrameId frame);
  bool try_huge(uint64_t piece, FrameId frame);

  platform::File file_;
  platform::Mapping mapping_;
  const unsigned block_shift_;
  const bool huge_;
  const bool is_staged_;
  StagingBuffers staging_;
  std::unique_ptr<Atomic<uint8_t>[]> piece_used_;
  std::unique_ptr<Atomic<uint8_t>[]> frame_used_;
  Atomic<uint32_t> used_pieces_;
  Atomic<uint32_t> huge_pieces_;
  // Pieces to leave small before the next try, and how many that were the last time. Hints: races lose a step at most.
  Atomic<uint32_t> pause_left_;
  Atomic<uint32_t> pause_;
};

}  // namespace spw::cache
