#include "cache/fault_around.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "cache/partition_map.h"

namespace spw::cache {

namespace {

// The chance that what is evicted for a block nobody needed is missed.
constexpr double kEvictedMissed = 0.25;
// The two thresholds of a level lie apart, so that it does not swing between two; a chance of 1 is above the upper one.
double double_above(double needed) { return std::min(1.1 * needed, (1 + needed) / 2); }
double halve_below(double needed) { return 0.8 * needed; }
constexpr uint32_t kHalfSamplesMin = 8;  // they are rarer
// From so many samples on, if they leave no doubt.
constexpr uint32_t kClearSamplesMin = 8;
// The least share that is likely, where `share` of so many samples were seen (Wilson, 1927; three deviations, as it is
// asked again with each sample).
double likely_min(double share, double samples) {
  constexpr double kDeviations = 3, kSquare = kDeviations * kDeviations;
  const double spread = std::sqrt(share * (1 - share) / samples + kSquare / (4 * samples * samples));
  return (share + kSquare / (2 * samples) - kDeviations * spread) / (1 + kSquare / samples);
}
constexpr uint32_t kRecentMin = 64, kRecentMax = 65536, kRecentShare = 8;

constexpr unsigned kMeanShift = 8;
constexpr uint32_t kMeanOf = 16;

constexpr unsigned kStampShift = 38, kUnitShift = 4;
constexpr uint64_t kStampMask = (uint64_t{1} << (64 - kStampShift)) - 1;
static_assert(kUnitShift + kBlockIdBits == kStampShift);

unsigned log2_floor(uint64_t value) { return static_cast<unsigned>(std::bit_width(value)) - 1; }

unsigned level_max(unsigned block_shift, uint32_t blocks_max) {
  const uint64_t blocks =
      std::min<uint64_t>(FaultAround::kUnitBytesMax >> block_shift, run_blocks_max(block_shift));
  return log2_floor(std::max<uint64_t>(1, std::min<uint64_t>(blocks, blocks_max)));
}

uint32_t recent_share(uint32_t frames) { return std::max(frames / kRecentShare, 1u); }
unsigned recent_bits(uint32_t frames) {
  return log2_floor(std::clamp(recent_share(frames), kRecentMin, kRecentMax));
}

// Without its stamp; never 0.
uint64_t entry_of(uint64_t unit, unsigned level) { return unit << kUnitShift | (level + 1); }

}  // namespace

FaultAround::FaultAround(unsigned block_shift, uint32_t frame_count, uint32_t blocks_max)
    : block_shift_(block_shift),
      level_max_(level_max(block_shift, blocks_max)),
      soon_(recent_share(frame_count)),
      recent_shift_(64 - recent_bits(frame_count)),
      areas_(std::make_unique<Area[]>(kAreas)),
      recent_(std::make_unique<Atomic<uint64_t>[]>(uint64_t{1} << (64 - recent_shift_))) {}

uint64_t FaultAround::metadata_bytes() const {
  return sizeof(*this) + kAreas * sizeof(Area) + (sizeof(recent_[0]) << (64 - recent_shift_));
}

double FaultAround::needed(uint64_t unit_bytes, double request_bytes) {
  const auto transfer = static_cast<double>(unit_bytes);
  const double request = request_bytes + transfer;
  return (transfer + kEvictedMissed * request) / ((1 + kEvictedMissed) * request);
}

// The mean number follows, a sixteenth of the way each time.
void FaultAround::begin_wait() {
  const uint32_t now = (waiting_.fetch_add_relaxed(1) + 1) << kMeanShift;
  const uint32_t mean = waiting_mean_.load_relaxed();
  waiting_mean_.store_relaxed(mean == 0 ? now : mean - mean / kMeanOf + now / kMeanOf);
}

double FaultAround::request_bytes() const {
  const uint32_t mean = waiting_mean_.load_relaxed();
  if (mean == 0) return kRequestBytes;
  const double threads = std::max(1.0, mean / static_cast<double>(1u << kMeanShift));
  return kRequestBytes + kWaitBytes / (threads * threads);
}

FaultAround::Area& FaultAround::area_of(BlockId block) const {
  return areas_[(block.value << block_shift_) / kAreaBytes % kAreas];
}

Atomic<uint64_t>& FaultAround::recent_of(uint64_t pair, unsigned level) const {
  return recent_[((pair << 4 | level) * 0x9E3779B97F4A7C15u) >> recent_shift_];
}

uint64_t FaultAround::stamp() const { return brought_.load_relaxed() & kStampMask; }

// Whether the sibling of the block's unit came in alone a moment ago; once.
bool FaultAround::take_sibling(BlockId block, unsigned level) {
  const uint64_t unit = block.value >> level;
  Atomic<uint64_t>& entry = recent_of(unit >> 1, level);
  const uint64_t found = entry.load_relaxed();
  if ((found & ((uint64_t{1} << kStampShift) - 1)) != entry_of(unit ^ 1, level)) return false;
  entry.store_relaxed(0);
  return ((stamp() - (found >> kStampShift)) & kStampMask) <= soon_;
}

void FaultAround::remember(BlockId block, unsigned level) {
  const uint64_t unit = block.value >> level;
  recent_of(unit >> 1, level).store_relaxed(stamp() << kStampShift | entry_of(unit, level));
}

namespace {
template <class Value>
void add_one(Atomic<Value>& value) {
  value.store_relaxed(static_cast<Value>(value.load_relaxed() + 1));
}
}  // namespace

FaultAround::Unit FaultAround::on_miss(BlockId block) {
  if (level_max_ == 0) return {block, 1};
  Area& area = area_of(block);
  if (area.has_begun.load_relaxed() == 0) begin_area(area, block);
  const unsigned level = std::min<unsigned>(area.level.load_relaxed(), level_max_);
  const auto unit = [&](unsigned at, bool is_other_half = false) {
    brought_.store_relaxed(brought_.load_relaxed() + (uint64_t{1} << at));
    return Unit{BlockId(block.value >> at << at), uint32_t{1} << at, is_other_half};
  };
  if (level > 0 && take_sibling(block, level - 1)) {
    add_one(area.half.followed);
    return unit(level - 1, true);
  }
  if (take_sibling(block, level)) {
    add_one(area.whole.followed);
  } else {
    add_one(area.whole.alone);
    remember(block, level);
  }
  add_one(area.turn);
  const bool explores = level > 0 && area.turn.load_relaxed() % kExploreEvery == 0;
  if (explores) {
    add_one(area.half.alone);
    remember(block, level - 1);
  }
  adapt(area);
  return unit(explores ? level - 1 : level);
}

void FaultAround::begin_area(Area& area, BlockId block) const {
  area.has_begun.store_relaxed(1);
  const uint64_t area_blocks = kAreaBytes >> block_shift_;
  if (block.value < area_blocks) return;
  const unsigned before = level_of(BlockId(block.value - area_blocks));
  if (before > 0) area.level.store_relaxed(static_cast<uint8_t>(before - 1));
}

// What is known of the levels next to the new one is kept.
void FaultAround::change_level(Area& area, unsigned level) {
  const bool doubles = level > area.level.load_relaxed();
  Count &from = doubles ? area.whole : area.half, &to = doubles ? area.half : area.whole;
  to.alone.store_relaxed(from.alone.load_relaxed());
  to.followed.store_relaxed(from.followed.load_relaxed());
  from.alone.store_relaxed(0);
  from.followed.store_relaxed(0);
  area.level.store_relaxed(static_cast<uint8_t>(level));
}

void FaultAround::adapt(Area& area) {
  const unsigned level = area.level.load_relaxed();
  const auto share = [](const Count& count) {
    return static_cast<double>(count.followed.load_relaxed()) / count.alone.load_relaxed();
  };
  const double request = request_bytes();
  const auto needed_at = [&](unsigned at) { return needed(uint64_t{1} << (block_shift_ + at), request); };
  const uint32_t samples = area.whole.alone.load_relaxed();
  if (level < level_max_ && samples >= kClearSamplesMin) {
    const double seen = std::min(share(area.whole), 1.0);
    const double sure = samples >= kSamplesMin ? seen : likely_min(seen, samples);
    if (sure > double_above(needed_at(level))) return change_level(area, level + 1);
  }
  if (level > 0 && area.half.alone.load_relaxed() >= kHalfSamplesMin &&
      share(area.half) < halve_below(needed_at(level - 1)))
    return change_level(area, level - 1);
  // What was long ago counts less and less.
  for (Count* count : {&area.whole, &area.half}) {
    if (count->alone.load_relaxed() < 2 * kSamplesMin) continue;
    count->alone.store_relaxed(count->alone.load_relaxed() / 2);
    count->followed.store_relaxed(count->followed.load_relaxed() / 2);
  }
}

}  // namespace spw::cache
