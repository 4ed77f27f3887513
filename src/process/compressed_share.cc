#include "process/compressed_share.h"

#include <algorithm>

#include "telemetry/counters.h"

namespace spw::process {

namespace {

using store::ObjectPool;

double mean_of(double before, double now) { return before == 0 ? now : (before + now) / 2; }

}  // namespace

CompressedShare::CompressedShare(const Parts& parts)
    : parts_(parts), memory_bytes_(uint64_t{parts.cache.frame_count()} * parts.frame_bytes) {
  parts_.memory.budget.others.store_release(this);
}

uint64_t CompressedShare::bytes() const { return std::max(target_bytes(), held_bytes()); }

uint64_t CompressedShare::left_bytes() const {
  const uint64_t memory = memory_bytes_.load_relaxed();
  const uint64_t used = uint64_t{parts_.cache.occupied_frames()} * parts_.frame_bytes;
  return memory - std::min(memory, used) + first_budget_bytes(memory);
}

void CompressedShare::look(const Seen& seen, uint64_t now_ns) {
  memory_bytes_.store_relaxed(seen.memory_bytes);
  if (!seen.blocks_leave) return;
  if (!has_begun_) {
    begin();
    next_ns_ = now_ns + kDecideNs;
  } else if (now_ns >= next_ns_) {
    next_ns_ = now_ns + kDecideNs;
    measure();
    decide(seen.limit_bytes);
  }
  if (has_begun_ && !has_decided_) grow();
  const uint64_t step = seen.memory_bytes / kSteps, target = target_bytes();
  target_bytes_.store_relaxed(target < wanted_bytes_
                                  ? std::min(wanted_bytes_, target + step)
                                  : std::max(wanted_bytes_, target - std::min(target, step)));
  parts_.memory.budget.bytes_max.store_relaxed(target_bytes());
}

void CompressedShare::begin() {
  measure();
  if (totals_.tried < kTriedMin) return;
  has_begun_ = true;
  if (fits_ >= kFitsMin) wanted_bytes_ = memory_bytes_.load_relaxed() / kFirstShare;
}

void CompressedShare::grow() {
  const uint64_t memory = memory_bytes_.load_relaxed();
  const uint64_t most = memory / locality::kShares * locality::kShareMax, margin = memory / kMarginShare;
  if (fits_ < kFitsMin || held_bytes() + margin < wanted_bytes_) return;
  wanted_bytes_ = std::min(most, held_bytes() + 2 * margin);
}

void CompressedShare::measure() {
  const auto totals = parts_.memory.codec->totals();
  const uint64_t misfits =
      telemetry::total(telemetry::read_totals(), telemetry::Counter::compression_misfits);
  const auto fitted = static_cast<double>(totals.fitted - totals_.fitted);
  const auto others = static_cast<double>(misfits - misfits_);
  if (totals.tried - totals_.tried >= kTriedMin || !has_begun_) {
    if (fitted + others > 0) fits_ = fitted / (fitted + others);
    if (fitted > 0)
      kept_bytes_ =
          ObjectPool::kept_bytes_of(static_cast<double>(totals.fitted_bytes - totals_.fitted_bytes) / fitted);
    totals_ = totals;
    misfits_ = misfits;
  }
  const auto reads = parts_.memory.take_device_reads();
  if (reads.pages > 0) device_ns_ = mean_of(device_ns_, reads.ns / reads.pages);
}

locality::CompressionCosts CompressedShare::costs() const {
  return {.fits = fits_,
          .kept_bytes = kept_bytes_,
          .compress_ns = parts_.memory.codec->compress_ns(),
          .open_ns = parts_.memory.codec->open_ns(),
          .fault_ns = kFaultNs,
          .device_ns = device_ns_ == 0 ? kDeviceNs : device_ns_};
}

void CompressedShare::decide(uint64_t limit_bytes) {
  locality::GapHistogram all = parts_.curve.take_recent_distances();
  all.add_all(distances_, kMemory);
  distances_ = std::move(all);
  if (is_moving()) {
    distances_ = {};  // frames had another size
    return;
  }
  if (distances_.count() < kCameBackMin) return;
  has_decided_ = true;
  if (fits_ < kFitsMin) {
    wanted_bytes_ = 0;
    return;
  }
  const locality::SharedMemory memory = {.memory_bytes = memory_bytes_.load_relaxed(),
                                         .frames_bytes = limit_bytes};
  const auto costs = this->costs();
  const uint64_t best = locality::best_pool_bytes(distances_, memory, costs);
  const double now = locality::misses_cost_ns(distances_, memory, costs, wanted_bytes_);
  if (locality::misses_cost_ns(distances_, memory, costs, best) < now * (1 - kGainMin)) wanted_bytes_ = best;
}

}  // namespace spw::process
