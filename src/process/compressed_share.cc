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
  if (!parts_.is_child) {
    wanted_bytes_ = memory_bytes_.load_relaxed() / kBeginShare;
    target_bytes_.store_relaxed(wanted_bytes_);
    parts_.memory.budget.bytes_max.store_relaxed(wanted_bytes_);
  }
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
  keep_within(seen.pool_bytes_max);
  blocks_leave_ = seen.blocks_leave;
  if (!has_begun_ && seen.is_watching && ++waiting_looks_ == kWaitingLooksMax) wanted_bytes_ = 0;
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
  if (has_begun_) waiting_looks_ = target == target_bytes() && is_to_follow() ? waiting_looks_ + 1 : 0;
  if (!is_moving()) return;
  parts_.curve.begin_anew();
  distances_ = {};
}

// Others may have taken of the memory: native memory, other processes below the same cap, who lowered the cap.
void CompressedShare::keep_within(uint64_t pool_bytes_max) {
  pool_bytes_max_ = pool_bytes_max;
  wanted_bytes_ = std::min(wanted_bytes_, pool_bytes_max);
  target_bytes_.store_relaxed(std::min(target_bytes(), pool_bytes_max));
  // A forked child has its parent's still.
  Atomic<uint64_t>& budget = parts_.memory.budget.bytes_max;
  budget.store_relaxed(std::min(budget.load_relaxed(), pool_bytes_max));
}

void CompressedShare::evict_to_budget() {
  uint64_t before = 0;
  do {
    before = held_bytes();
    parts_.memory.evict_to_budget();
  } while (is_above() && held_bytes() < before);
}

void CompressedShare::begin() {
  measure();
  if (totals_.tried < kTriedMin) return;
  has_begun_ = true;
  wanted_bytes_ = 0;
  if (fits_ >= kFitsMin)
    wanted_bytes_ = std::min(pool_bytes_max_, memory_bytes_.load_relaxed() / kFirstShare);
}

void CompressedShare::grow() {
  const uint64_t margin = memory_bytes_.load_relaxed() / kMarginShare;
  if (fits_ < kFitsMin || held_bytes() + margin < wanted_bytes_) return;
  wanted_bytes_ = std::min(pool_bytes_max_, held_bytes() + 2 * margin);
}

void CompressedShare::measure() {
  const auto totals = parts_.memory.codec->totals();
  const uint64_t misfits =
      telemetry::total(telemetry::read_totals(), telemetry::Counter::compression_misfits);
  const auto fitted = static_cast<double>(totals.fitted - totals_.fitted);
  const auto others = static_cast<double>(misfits - misfits_);
  if (totals.tried - totals_.tried >= kTriedMin) {
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
  CurveObserver::Recent recent = parts_.curve.take_recent();
  // While others that left before are still to come, those that came are the ones that come soonest.
  if (is_moving() || recent.older > kOlderMax * recent.distances.count()) {
    distances_ = {};
    return;
  }
  recent.distances.add_all(distances_, kMemory);
  distances_ = std::move(recent.distances);
  if (distances_.count() < kCameBackMin) return;
  has_decided_ = true;
  if (fits_ < kFitsMin) {
    wanted_bytes_ = 0;
    return;
  }
  const locality::SharedMemory memory = {.memory_bytes = memory_bytes_.load_relaxed(),
                                         .frames_bytes = limit_bytes};
  const auto costs = this->costs();
  const uint64_t best = std::min(pool_bytes_max_, locality::best_pool_bytes(distances_, memory, costs));
  const double now = locality::misses_cost_ns(distances_, memory, costs, wanted_bytes_);
  if (locality::misses_cost_ns(distances_, memory, costs, best) < now * (1 - kGainMin)) wanted_bytes_ = best;
}

}  // namespace spw::process
