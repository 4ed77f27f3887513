// Whether a block that comes without being stored to will be soon: one that a load has missed, or that comes along
// with a block that is stored to. (Each kind has a predictor of its own.) If so it is installed writable, as dirty: the
// store then costs no second fault and no change of page tables, which is half of what a miss costs beside its
// transfer. If it is not stored to after all it is written once for nothing; so it takes a clear majority. (Of a shared
// file it is compared instead: cache/writeback/fill_sums.h.)
//
// Areas of kAreaBytes each have counts of their own; areas that are kAreas apart share them.
//
//     came     blocks that came protected, so that their first stores are noticed
//     stored   of these, how many were stored to
//     predicts set when stored / came is above kAbovePercent, cleared when it is below kBelowPercent; the counts are
//              halved at each look.
//     While it is set one block in kSampleEvery still comes protected, to see.
//
// Threads: any, without a lock. All of it is hints: an update that is lost costs a sample. Limits: kAreas.
#pragma once

#include <cstdint>
#include <memory>

#include "base/atomic.h"
#include "base/ids.h"
#include "base/units.h"

namespace spw::access {

class StorePredictor {
 public:
  static constexpr uint64_t kAreaBytes = 16 * kMiB;
  static constexpr unsigned kSampleEvery = 16;
  static constexpr unsigned kAbovePercent = 75, kBelowPercent = 60;
  static constexpr unsigned kSamplesMin = 64;

  explicit StorePredictor(unsigned block_shift)
      : block_shift_(block_shift), areas_(std::make_unique<Area[]>(kAreas)) {}

  // Of a block that is about to come. True: have it writable.
  bool predicts_store(BlockId block) {
    Area& area = area_of(block);
    if (!area.predicts.load_relaxed()) return false;
    const auto turn = static_cast<uint8_t>(area.turn.load_relaxed() + 1);
    area.turn.store_relaxed(turn);
    return turn % kSampleEvery != 0;
  }
  // It came protected.
  void note_came(BlockId block) {
    Area& area = area_of(block);
    const auto came = static_cast<uint16_t>(area.came.load_relaxed() + 1);
    area.came.store_relaxed(came);
    if (came >= kSamplesMin) look(area, came);
  }
  // One that came so has been stored to.
  void note_stored(BlockId block) {
    Area& area = area_of(block);
    area.stored.store_relaxed(static_cast<uint16_t>(area.stored.load_relaxed() + 1));
  }

 private:
  static constexpr uint32_t kAreas = 1024;
  struct Area {
    Atomic<uint16_t> came, stored;
    Atomic<uint8_t> turn;
    Atomic<bool> predicts;
  };

  Area& area_of(BlockId block) const { return areas_[(block.value << block_shift_) / kAreaBytes % kAreas]; }
  static void look(Area& area, unsigned came) {
    const unsigned stored = area.stored.load_relaxed();
    const unsigned percent = area.predicts.load_relaxed() ? kBelowPercent : kAbovePercent;
    area.predicts.store_relaxed(stored * 100 > came * percent);
    area.came.store_relaxed(static_cast<uint16_t>(came / 2));
    area.stored.store_relaxed(static_cast<uint16_t>(stored / 2));
  }

  const unsigned block_shift_;
  const std::unique_ptr<Area[]> areas_;
};

}  // namespace spw::access
