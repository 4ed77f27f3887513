#include "front/translate/translator.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/units.h"

namespace spw::front {

using cache::Access;
using telemetry::Counter;

namespace {

uint32_t granule_of(uintptr_t address) { return static_cast<uint32_t>(address >> SPW_GRANULE_SHIFT); }

// One direct entry for each granule the private SATC can hold, as a power of two, bounded.
uint64_t direct_entries(const SatcShape& shape, unsigned block_shift) {
  uint64_t granules = uint64_t{shape.entries()} << (block_shift - SPW_GRANULE_SHIFT);
  return std::clamp<uint64_t>(std::bit_ceil(granules), 1, kDirectEntriesMax);
}

}  // namespace

size_t Translator::bytes_for(const SatcShape& shape, const TranslatorConfig& config) {
  return PrivateSatc::bytes_for(shape) +
         direct_entries(shape, config.block_shift) * sizeof(__spw_satc_entry) + GhostList::bytes_for(shape);
}

Translator::Translator(const TranslatorConfig& config, cache::Client& client, const SatcShape& shape,
                       platform::Mapping memory, __spw_thread& thread)
    : config_(config),
      client_(client),
      shape_(shape),
      thread_(thread),
      memory_(std::move(memory)),
      private_(shape, memory_.data()),
      ghosts_(shape, memory_.data() + PrivateSatc::bytes_for(shape) +
                         direct_entries(shape, config.block_shift) * sizeof(__spw_satc_entry)),
      direct_(reinterpret_cast<__spw_satc_entry*>(memory_.data() + PrivateSatc::bytes_for(shape))),
      direct_mask_(direct_entries(shape, config.block_shift) - 1),
      counters_(telemetry::thread_counters()) {
  ring_.fill(kNoFrame);
  thread_.direct = direct_;
  thread_.direct_mask_bytes = direct_mask_ * sizeof(__spw_satc_entry);
}

SatcEntry& Translator::lookup(BlockId block, Access access) {
  PartitionId partition = config_.partitions.of(block);
  SatcEntry* entry = private_.find(block, partition);
  if (!entry) return miss(block, partition, access);
  counters_.add(Counter::private_hits);
  if (access != Access::kRead && !entry->writable) {
    config_.cache->mark_dirty(client_, entry->frame);
    entry->writable = true;
  }
  return *entry;
}

SatcEntry& Translator::miss(BlockId block, PartitionId partition, Access access) {
  SPW_CHECK(!busy_);  // a signal handler touched managed memory while its thread was in here
  busy_ = true;
  counters_.add(Counter::private_misses);
  SatcEntry* entry = private_.insert(
      block, partition, ways_limit(block, partition),
      [this](BlockId candidate) { return withdraw_direct(candidate); },
      [this](BlockId victim, const SatcEntry& old) { evicted(victim, old); });
  cache::Pin pin;
  Status status = config_.cache->pin(client_, block, access, &pin);
  if (!status) config_.fatal(status);
  entry->data = pin.data;
  entry->frame = pin.frame;
  entry->writable = access != Access::kRead;
  busy_ = false;
  return *entry;
}

// All ways while the partition has frames to spare; when it must evict, as few as do without regret.
uint32_t Translator::ways_limit(BlockId block, PartitionId partition) {
  if (config_.cache->has_free_frames(partition)) return shape_.ways;
  ghosts_.missed(block);
  return std::max(shape_.ways * ghosts_.ways() / kSatcWays, 1u);
}

void Translator::fill_direct(uintptr_t address, const SatcEntry& entry) {
  __spw_satc_entry& direct = direct_entry(address);
  direct.read_tag = granule_of(address);
  direct.write_tag = entry.writable ? granule_of(address) : 0;
  direct.delta = reinterpret_cast<uintptr_t>(entry.data) - round_down(address, block_bytes());
}

// Removes the granules of `block` from the direct SATC; whether there were any.
bool Translator::withdraw_direct(BlockId block) {
  bool found = false;
  uintptr_t start = address_of(block);
  for (uintptr_t address = start; address != start + block_bytes(); address += SPW_GRANULE_BYTES) {
    __spw_satc_entry& direct = direct_entry(address);
    if (direct.read_tag != granule_of(address)) continue;
    direct = {};
    found = true;
  }
  return found;
}

void Translator::evicted(BlockId block, const SatcEntry& entry) {
  withdraw_direct(block);
  ghosts_.left(block);
  for (HeldWindow& window : windows_) {
    if (window.holders == 0 || window.frame != entry.frame) continue;
    window.orphaned = true;
    return;
  }
  retire(entry.frame);
}

void Translator::retire(FrameId frame) {
  FrameId oldest = ring_[ring_at_];
  ring_[ring_at_] = frame;
  ring_at_ = (ring_at_ + 1) % kRingPins;
  if (oldest != kNoFrame) config_.cache->unpin(client_, oldest);
}

const std::byte* Translator::read_across(uintptr_t address, size_t size) {
  SPW_CHECK(size <= crossing_.size());
  counters_.add(Counter::crossing_accesses);
  size_t first = std::min<size_t>(size, block_bytes() - offset_of(address));
  std::memcpy(crossing_.data(), translate(address, false), first);
  std::memcpy(crossing_.data() + first, translate(address + first, false), size - first);
  return crossing_.data();
}

void Translator::write_across(uintptr_t address, const std::byte* bytes, size_t size) {
  size_t first = std::min<size_t>(size, block_bytes() - offset_of(address));
  std::memcpy(translate(address, true), bytes, first);
  if (first == size) return;
  counters_.add(Counter::crossing_accesses);
  std::memcpy(translate(address + first, true), bytes + first, size - first);
}

region::Window Translator::open_window(uintptr_t address, size_t max_bytes, Access access) {
  size_t bytes = std::min<size_t>(max_bytes, block_bytes() - offset_of(address));
  bool whole = access == Access::kOverwrite && bytes == block_bytes();
  std::byte* data =
      whole ? lookup(block_of(address), access).data : translate(address, access != Access::kRead);
  return {data, bytes, kNoFrame};
}

region::Window Translator::pin_window(uintptr_t address, size_t max_bytes, Access access) {
  size_t bytes = std::min<size_t>(max_bytes, block_bytes() - offset_of(address));
  if (access == Access::kOverwrite && bytes != block_bytes()) access = Access::kWrite;
  SatcEntry& entry = lookup(block_of(address), access);
  HeldWindow* slot = nullptr;
  for (HeldWindow& window : windows_) {
    if (window.holders != 0 && window.frame == entry.frame && !window.orphaned) slot = &window;
    if (window.holders == 0 && !slot) slot = &window;
  }
  SPW_CHECK(slot);  // more than kWindowsPerThread at a time
  slot->frame = entry.frame;
  slot->orphaned = false;
  ++slot->holders;
  return {entry.data + offset_of(address), bytes, entry.frame};
}

bool Translator::unpin_window(const region::Window& window) {
  for (HeldWindow& held : windows_) {
    if (held.holders == 0 || held.frame != window.frame) continue;
    if (--held.holders == 0 && held.orphaned) retire(held.frame);
    return true;
  }
  return false;
}

uint32_t Translator::free_windows() const {
  return static_cast<uint32_t>(
      std::count_if(windows_.begin(), windows_.end(), [](const HeldWindow& w) { return w.holders == 0; }));
}

void Translator::drop(BlockId first, uint64_t count) {
  private_.remove_range(first, count, config_.partitions,
                        [this](BlockId block, const SatcEntry& entry) { evicted(block, entry); });
}

void Translator::flush() {
  private_.clear([this](BlockId block, const SatcEntry& entry) { evicted(block, entry); });
  for (FrameId& frame : ring_) {
    if (frame != kNoFrame) config_.cache->unpin(client_, frame);
    frame = kNoFrame;
  }
}

}  // namespace spw::front
