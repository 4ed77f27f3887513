// CLOCK: a hand goes round the frames and takes the first that was not used since it last came by (TriCache 3.2).
//
// Needs no touches: clients set the referenced bit in the pin word as they pin. It holds one number.
#pragma once

#include "cache/eviction/policy.h"

namespace spw::cache {

class ClockPolicy final : public Policy {
 public:
  explicit ClockPolicy(uint32_t frame_count) : frame_count_(frame_count) {}

  const char* name() const override { return "clock"; }
  void on_insert(uint32_t, BlockId) override {}
  void on_remove(uint32_t, BlockId) override {}
  void on_keep(uint32_t) override {}
  void on_touch(uint32_t) override {}
  bool wants_touches() const override { return false; }
  uint32_t next_candidate(FrameProbe& frames) override;
  bool goes_along(uint32_t) override { return true; }
  bool clears_ahead() const override { return true; }
  uint64_t metadata_bytes() const override { return sizeof(*this); }
  void check_invariants(const std::vector<uint8_t>&) const override {}

 private:
  const uint32_t frame_count_;
  uint32_t hand_ = 0;
};

}  // namespace spw::cache
