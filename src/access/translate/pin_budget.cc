#include "access/translate/pin_budget.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/units.h"
#include "platform/uncancelled.h"

namespace spw::access {

namespace {

constexpr uint32_t kSmallestCharge = kMinEntries + kRingPins;

// Kept back for threads beyond the expected ones, up to half of the capacity.
// (PageRank with a hot array of a quarter of memory, 1100 frames of 64 KiB, takes 16
// s when three quarters are kept back, 2.8 s with a half and 2.5 s with a quarter.)
constexpr uint32_t kLateThreads = 256;
constexpr uint32_t kLateShare = 64;

// From here on a set fewer is worth less than strides of powers of two.
constexpr uint32_t kOddSetsMin = 8;

// Seven eighths of a partition, but always some frames for fills and writebacks in flight.
uint32_t capacity_of(uint32_t partition_frames) {
  constexpr uint32_t kUnpinnedFramesMin = 16;
  uint32_t unpinned = std::max(partition_frames / 8, kUnpinnedFramesMin);
  return partition_frames > unpinned ? partition_frames - unpinned : 0;
}

}  // namespace

PinBudget::PinBudget(uint32_t partition_frames, uint32_t partitions, uint32_t expected_threads,
                     uint32_t reserved, uint64_t wait_ns_max)
    : partitions_(partitions),
      expected_threads_(std::max(expected_threads, 1u)),
      capacity_(capacity_of(partition_frames) - std::min(capacity_of(partition_frames), reserved)),
      wait_ns_max_(wait_ns_max) {
  SPW_CHECK(is_power_of_two(partitions));
}

SatcShape PinBudget::shape_for(uint32_t entries_per_partition) const {
  SatcShape shape;
  shape.ways = std::min(entries_per_partition, kSatcWays);
  shape.groups = partitions_;
  const uint32_t sets = entries_per_partition / shape.ways;
  shape.sets = sets > kOddSetsMin && sets % 2 == 0 ? sets - 1 : sets;
  return shape;
}

uint32_t PinBudget::for_late_threads() const {
  return std::min(capacity_ / 2, kLateThreads * kSmallestCharge);
}

uint32_t PinBudget::entries_max() const { return std::min(capacity_ * partitions_, kEntriesPerThreadMax); }

// The next thread's.
uint32_t PinBudget::charge_for_thread(uint32_t left) const {
  uint32_t for_expected = capacity_ - for_late_threads();
  uint32_t first = for_expected / 2;
  uint32_t fair = expected_threads_ > 1 ? (for_expected - first) / (expected_threads_ - 1) : 0;
  uint32_t charge = threads_ == 0 ? first : threads_ < expected_threads_ ? fair : left / kLateShare;
  if (threads_ < expected_threads_) charge = std::min(charge, left - std::min(left, for_late_threads()));
  return std::max(charge, kSmallestCharge);
}

Result<SatcShape> PinBudget::acquire(For whom) {
  platform::Uncancelled guard;
  std::unique_lock lock(mutex_);
  released_.wait_for(lock, std::chrono::nanoseconds(wait_ns_max_),
                     [this] { return capacity_ - charged_ >= kSmallestCharge; });
  uint32_t left = capacity_ - charged_;
  if (left < kSmallestCharge)
    return Status::sentence(EINVAL, "the memory cap is too small for " + std::to_string(threads_ + 1) +
                                        " threads: raise --memory or lower --block");
  const uint32_t charge = whom == For::kThread ? charge_for_thread(left) : kSmallestCharge;
  uint32_t entries_max = std::max(kEntriesPerThreadMax / partitions_, kMinEntries);
  uint32_t entries = std::min(charge - kRingPins, entries_max);
  SatcShape shape = shape_for(entries);
  if (whom == For::kThread) ++threads_;
  charged_ += shape.charge();
  SPW_CHECK(charged_ <= capacity_);
  return shape;
}

SatcShape PinBudget::grow(const SatcShape& shape) {
  std::lock_guard lock(mutex_);
  uint32_t absent = expected_threads_ > threads_ ? expected_threads_ - threads_ : 0;
  uint32_t kept = for_late_threads() + (capacity_ - for_late_threads()) / (2 * expected_threads_) * absent;
  uint32_t left = capacity_ - charged_;
  uint32_t more = std::min(left - std::min(left, kept), shape.sets * shape.ways);
  uint32_t entries = std::min(shape.sets * shape.ways + more, kEntriesPerThreadMax / partitions_);
  SatcShape larger = shape_for(entries);
  if (larger.charge() < shape.charge() + shape.charge() / kGrowthShareMin) return shape;
  charged_ += larger.charge() - shape.charge();
  SPW_CHECK(charged_ <= capacity_);
  return larger;
}

void PinBudget::release(const SatcShape& shape, For whom) {
  std::lock_guard lock(mutex_);
  SPW_CHECK(charged_ >= shape.charge());
  charged_ -= shape.charge();
  if (whom == For::kThread) SPW_CHECK(threads_-- > 0);
  released_.notify_one();
}

uint32_t PinBudget::charged() const {
  std::lock_guard lock(mutex_);
  return charged_;
}

}  // namespace spw::access
