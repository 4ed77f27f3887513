// Reads and writes of several blocks: those of a stripe are held, copied and let go together, where the cache has them
// or has frames for them at once. What has to be waited for, and parts of blocks that are written, go block by block.
#include <algorithm>

#include "files/buffered_file.h"

namespace spw::files {

using cache::Access;
using cache::Pin;

using Use = store::GrowingStore::Use;

// As many of some neighbours, from the first on, as can be had together, pinned while this lives.
class BufferedFile::HeldRun {
 public:
  HeldRun(BufferedFile& file, cache::Client& client, BlockId first, uint32_t blocks, Access access,
          bool beside_managed)
      : file_(file), client_(client) {
    if (beside_managed) {
      runs_ = &file.runs_beside_managed_;
      if (runs_->fetch_add_relaxed(1) >= kRunsBesideManagedMax) return;
    }
    count_ = file.parts_.cache.pin_run(client, first, blocks, access, pins_);
  }
  ~HeldRun() {
    for (uint32_t i = 0; i < count_; ++i) file_.parts_.cache.unpin(client_, pins_[i].frame);
    if (runs_) runs_->fetch_sub_relaxed(1);
  }
  HeldRun(const HeldRun&) = delete;
  HeldRun& operator=(const HeldRun&) = delete;

  uint32_t count() const { return count_; }
  // Calls move(data, bytes) for the pieces of memory that bytes [begin, end) of the run are.
  template <class Move>
  void for_each_piece(uint64_t begin, uint64_t end, Move move) const {
    const unsigned shift = file_.parts_.regions.block_shift();
    const uint64_t block_bytes = uint64_t{1} << shift;
    while (begin < end) {
      auto block = static_cast<uint32_t>(begin >> shift);
      std::byte* const data = pins_[block].data + (begin & (block_bytes - 1));
      uint64_t piece_end = (uint64_t{block} + 1) << shift;
      while (piece_end < end && pins_[block + 1].data == pins_[block].data + block_bytes) {
        ++block;
        piece_end += block_bytes;
      }
      piece_end = std::min(piece_end, end);
      move(data, piece_end - begin);
      begin = piece_end;
    }
  }

 private:
  BufferedFile& file_;
  cache::Client& client_;
  Atomic<uint32_t>* runs_ = nullptr;
  uint32_t count_ = 0;
  Pin pins_[kStripeBlocks];
};

// Whole blocks. How many bytes were written; 0: it is write_block()'s.
uint64_t BufferedFile::write_run(cache::Client& client, uint64_t offset, Pieces& from, uint64_t bytes) {
  const unsigned shift = parts_.regions.block_shift();
  if (bytes >> shift < 2 || (offset & (parts_.regions.block_bytes() - 1)) != 0) return 0;
  const BlockId first = block_at(offset);
  const auto blocks =
      static_cast<uint32_t>(std::min(bytes >> shift, kStripeBlocks - first.value % kStripeBlocks));
  if (blocks < 2) return 0;
  const Writing writing(stripe_of(first));
  const HeldRun held(*this, client, first, blocks, Access::kOverwrite, from.is_managed());
  if (held.count() == 0) return 0;
  const uint64_t written = uint64_t{held.count()} << shift;
  held.for_each_piece(0, written, [&](std::byte* data, uint64_t piece) { from.get(data, piece); });
  dirty_.note_run(offset >> shift, held.count());  // not before, as in write_block()
  return written;
}

// The first and the last block may be read in part. How many bytes were read; 0: it is read_block()'s, as it is beside
// a writer: who waited for one here would hold frames that this one may need.
uint64_t BufferedFile::read_run(cache::Client& client, uint64_t offset, Pieces& to, uint64_t bytes) {
  const unsigned shift = parts_.regions.block_shift();
  const uint64_t within = offset & (parts_.regions.block_bytes() - 1);
  const BlockId first = block_at(offset);
  const uint64_t touched = (within + bytes + parts_.regions.block_bytes() - 1) >> shift;
  const auto blocks = static_cast<uint32_t>(std::min(touched, kStripeBlocks - first.value % kStripeBlocks));
  if (blocks < 2) return 0;
  const HeldRun held(*this, client, first, blocks, Access::kRead, to.is_managed());
  if (held.count() == 0) {
    if (is_open_for(Use::kReads)) parts_.cache.miss_run(client, first, blocks);
    return 0;
  }
  const uint64_t end = std::min(uint64_t{held.count()} << shift, within + bytes);
  const auto copy = [&] {
    held.for_each_piece(within, end, [&](const std::byte* data, uint64_t piece) { to.put(data, piece); });
  };
  const Pieces::Mark begin = to.mark();
  if (stripe_of(first).read(copy)) return end - within;
  to.go_back(begin);
  return 0;
}

}  // namespace spw::files
