// What all partitions of a cache share.
#pragma once

#include "cache/cache.h"
#include "cache/directory.h"
#include "cache/frame_pool/frame_source.h"
#include "cache/partition/fill_errors.h"
#include "cache/partition/store_set.h"
#include "cache/writeback/fill_sums.h"

namespace spw::cache {

struct PartitionContext {
  Options options;
  Directory& directory;
  FrameSource& frames;
  BlockSource& blocks;
  FillErrors& errors;
  StoreSet& written_stores;
  FillSums& fill_sums;
  FrameSource::Placement placement;
  bool owner_fills =
      false;  // demand fills go through the owner's queue (dedicated) or are the client's (combining)
  bool clients_take =
      false;  // a client takes a frame for its miss by itself, where it can (Organisation::take_alone)

  uint64_t block_bytes() const { return uint64_t{1} << options.block_shift; }
  std::byte* data(Resident resident) const { return placement.data(resident, options.block_shift); }
  // Some block may be at its own address.
  bool has_blocks_in_place() const { return placement.in_place_end > 0; }
  // Whether the block may come in dirty before anybody has stored to it: as it is, or with a sum.
  bool may_come_dirty(BlockId block) const {
    return placement.has_address(block) && (blocks.is_anonymous(block) || comes_summed(block));
  }
  bool comes_summed(BlockId block) const { return fill_sums.are_there() && blocks.is_shared_file(block); }
  // A frame was taken for the block, which is about to be filled: from its store, or anew.
  void tell_of_fill(BlockId block, bool is_read) const {
    if (options.observer) [[unlikely]]
      is_read ? options.observer->came(block) : options.observer->ended(block, 1);
  }
  void tell_left(BlockId block) const {
    if (options.observer) [[unlikely]]
      options.observer->left(block);
  }
};

}  // namespace spw::cache
