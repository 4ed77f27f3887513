// Runs of blocks that are about to be written. For the files of this folder.
#pragma once

#include "cache/partition/organisation.h"
#include "cache/writeback/writeback.h"

namespace spw::cache {

// A run under construction: places [begin, end) of one group, whose frames are all `writing`.
struct Writeback::Run {
  Organisation& told;
  EvictionBatch* batch;
  uint64_t group_first;
  uint32_t begin;
  uint32_t end;
  Backing first;  // of place `begin`
  bool is_readable;
  FrameId frames[kGroupBlocks];
  std::byte* copy = nullptr;  // what is written; nullptr: what is in the frames
  uint32_t copied_from = 0;   // which place is first in it

  uint32_t count() const { return end - begin; }
  Resident resident(uint32_t place) const { return {frames[place], BlockId(group_first + place)}; }
};

struct Writeback::Waiting {
  Run run;
  IoOp* op;
};

}  // namespace spw::cache
