#include "access/translate/translator.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "abi/managed.h"
#include "base/check.h"
#include "base/few_bytes.h"
#include "base/in_runtime.h"
#include "base/units.h"

namespace spw::access {

using cache::Access;
using telemetry::Counter;

namespace {

uint32_t granule_of(uintptr_t address) { return static_cast<uint32_t>(address >> SPW_GRANULE_SHIFT); }

// From this size on tables stand in huge pages: lookups are random.
constexpr uint64_t kHugeTablesBytesMin = 2 * kHugePageBytes;
// Full sets met between two questions to the budget that had nothing to give.
constexpr uint32_t kGrowthPause = 1u << 16;

// One direct entry for each granule that so many private entries can hold, as a power of two, bounded.
uint64_t direct_entries(uint32_t entries, unsigned block_shift) {
  uint64_t granules = uint64_t{entries} << (block_shift - SPW_GRANULE_SHIFT);
  return std::clamp<uint64_t>(std::bit_ceil(granules), 1, kDirectEntriesMax);
}

void prefer_huge_pages(std::byte* memory, uint64_t bytes) {
  if (bytes >= kHugeTablesBytesMin)
    (void)platform::advise(memory, bytes, platform::Advice::kHugePage).is_ok();
}

platform::Mapping map_zeroed(uint64_t bytes, void (*fatal)(const Status&)) {
  Result<platform::Mapping> mapping = platform::map_anonymous(round_up(bytes, kMmuPageBytes), kHugePageBytes);
  if (!mapping) fatal(mapping.status());
  return std::move(*mapping);
}

}  // namespace

Translator::Translator(const TranslatorConfig& config, cache::Client& client, const SatcShape& shape,
                       __spw_thread& thread)
    : config_(config),
      client_(client),
      shape_(shape),
      thread_(thread),
      tables_(map_tables(shape)),
      private_(shape, config.partitions, tables_.data()),
      ghosts_(shape, tables_.data() + PrivateSatc::bytes_for(shape)),
      direct_memory_(map_zeroed(
          direct_entries(config.budget ? config.budget->entries_max() : shape.entries(), config.block_shift) *
              sizeof(__spw_satc_entry),
          config.fatal)),
      direct_(reinterpret_cast<__spw_satc_entry*>(direct_memory_.data())),
      counters_(telemetry::thread_counters()) {
  ring_.fill(kNoFrame);
  size_direct();
}

Translator::~Translator() {
  if (config_.satc_bytes) config_.satc_bytes->fetch_sub_relaxed(footprint_bytes());
}

platform::Mapping Translator::map_tables(const SatcShape& shape) {
  platform::Mapping memory =
      map_zeroed(PrivateSatc::bytes_for(shape) + GhostList::bytes_for(shape), config_.fatal);
  prefer_huge_pages(memory.data(), memory.bytes());
  return memory;
}

uint64_t Translator::footprint_bytes() const {
  return tables_.bytes() + (direct_mask_ + 1) * sizeof(__spw_satc_entry);
}

// The direct SATC as large as the private one makes useful, or, where
// it holds the pins, as they may be many. It has to be empty.
void Translator::size_direct() {
  direct_mask_ = direct_entries(shape_.entries(), config_.block_shift) - 1;
  if (config_.levels == SatcLevels::kDirect) {
    direct_mask_ = std::bit_floor(shape_.sets * shape_.ways - 1) - 1;  // one pin is made before another goes
    direct_pins_.assign(direct_mask_ + 1, {});
  }
  prefer_huge_pages(direct_memory_.data(), (direct_mask_ + 1) * sizeof(__spw_satc_entry));
  present();
  if (config_.satc_bytes) config_.satc_bytes->fetch_add_relaxed(footprint_bytes());
}

void Translator::present() {
  thread_.direct = direct_;
  thread_.direct_mask_bytes = direct_mask_ * sizeof(__spw_satc_entry);
}

void Translator::pin_into(SatcEntry& entry, BlockId block, Access access) {
  cache::Pin pin;
  Status status = config_.cache->pin(client_, block, access, &pin);
  if (!status) config_.fatal(status);
  entry.data = pin.data;
  entry.frame = pin.frame;
  entry.writable = access != Access::kRead;
}

SatcEntry& Translator::pin_alone(BlockId block, Access access) {
  InRuntime guard;
  SPW_CHECK(!busy_);
  busy_ = true;
  counters_.add(Counter::private_misses);
  pin_into(alone_, block, access);
  retire(alone_.frame);
  busy_ = false;
  return alone_;
}

SatcEntry& Translator::lookup(BlockId block, Access access) {
  if (!has_private()) return pin_alone(block, access);
  SatcEntry* entry = private_.find(block);
  if (!entry) return miss(block, access);
  counters_.add(Counter::private_hits);
  if (access != Access::kRead && !entry->writable) {
    config_.cache->mark_dirty(client_, entry->frame);
    entry->writable = true;
  }
  return *entry;
}

SatcEntry& Translator::miss(BlockId block, Access access) {
  InRuntime guard;
  SPW_CHECK(!busy_);
  busy_ = true;
  counters_.add(Counter::private_misses);
  if (leaving_for_ > 0 && --leaving_for_ == 0) [[unlikely]]
    let_leave();
  config_.cache->pin_is_near(block);
  SatcEntry* entry = private_.insert(
      block, ways_limit(block), [this](BlockId candidate) { return withdraw_direct(candidate); },
      [this](BlockId victim, const SatcEntry& old) { evicted(victim, old); });
  pin_into(*entry, block, access);
  approach(block);
  busy_ = false;
  return *entry;
}

// Behind a miss of `block` next to the last one the next misses are known: their lines come in while the program works.
void Translator::approach(BlockId block) {
  const uint64_t step = block.value - last_miss_.value;
  last_miss_ = block;
  if (step != 1 && step != ~uint64_t{0}) return;
  const BlockId next(block.value + step);
  const BlockId after(next.value + step);
  if (after.value >> kBlockIdBits) return;
  config_.cache->pin_is_next(next);
  config_.cache->pin_is_near(after);
  private_.prefetch(after);
}

// All ways while the partition has frames to spare, and more sets if they are full and the budget has pins left; when
// it must evict, as few ways as do without regret.
uint32_t Translator::ways_limit(BlockId block) {
  if (!config_.cache->has_free_frames(config_.partitions.of(block))) {
    ghosts_.missed(block);
    return std::max(shape_.ways * ghosts_.ways() / kSatcWays, 1u);
  }
  if (config_.budget && private_.is_full_for(block)) {
    if (growth_pause_ == 0)
      grow();
    else
      --growth_pause_;
  }
  return shape_.ways;
}

void Translator::grow() {
  const SatcShape larger = config_.budget->grow(shape_);
  if (larger.entries() <= shape_.entries()) {
    growth_pause_ = kGrowthPause;
    return;
  }
  if (config_.satc_bytes) config_.satc_bytes->fetch_sub_relaxed(footprint_bytes());
  // A reader of the old mask, a loop that a signal interrupted, finds
  // nothing in what it may look at but what holds now.
  std::memset(direct_, 0, (direct_mask_ + 1) * sizeof(__spw_satc_entry));
  platform::Mapping tables = map_tables(larger);
  PrivateSatc into(larger, config_.partitions, tables.data());
  ghosts_ = GhostList(larger, tables.data() + PrivateSatc::bytes_for(larger));
  shape_ = larger;
  growing_ = true;
  private_.clear([&](BlockId block, const SatcEntry& entry) {
    if (into.is_full_for(block)) return evicted(block, entry);
    *into.insert(block, larger.ways, [](BlockId) { return false; }, [](BlockId, const SatcEntry&) {}) = entry;
  });
  growing_ = false;
  leaving_for_ = SPW_STABLE_TRANSLATIONS + 1;
  private_ = into;
  tables_ = std::move(tables);
  size_direct();
}

void Translator::fill_direct(uintptr_t address, const SatcEntry& entry) {
  if (config_.levels == SatcLevels::kPrivate || config_.levels == SatcLevels::kNone) return;
  __spw_satc_entry& direct = direct_entry(address);
  if (config_.levels == SatcLevels::kDirect) {
    // The pin just made becomes the entry's, and that of what was there comes into the ring in its place.
    DirectPin& pin = direct_pins_[static_cast<size_t>(&direct - direct_)];
    std::swap(pin.frame, ring_[(ring_at_ + kRingPins - 1) % kRingPins]);
    pin.block = block_of(address);
  }
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

// kDirect: gives up the entries of [first, first + count).
void Translator::drop_direct(BlockId first, uint64_t count) {
  for (size_t i = 0; i < direct_pins_.size(); ++i) {
    DirectPin& pin = direct_pins_[i];
    if (pin.frame == kNoFrame || pin.block.value - first.value >= count) continue;
    direct_[i] = {};
    retire(std::exchange(pin.frame, kNoFrame));
  }
}

void Translator::evicted(BlockId block, const SatcEntry& entry) {
  withdraw_direct(block);
  if (!config_.cache->has_free_frames(config_.partitions.of(block))) ghosts_.left(block);
  for (HeldWindow& window : windows_) {
    if (window.holders == 0 || window.frame != entry.frame) continue;
    window.orphaned = true;
    return;
  }
  retire(entry.frame);
}

void Translator::let_leave() {
  for (const FrameId frame : leaving_) config_.cache->unpin(client_, frame);
  leaving_.clear();
}

void Translator::retire(FrameId frame) {
  if (growing_) return leaving_.push_back(frame);
  FrameId oldest = ring_[ring_at_];
  ring_[ring_at_] = frame;
  ring_at_ = (ring_at_ + 1) % kRingPins;
  if (oldest != kNoFrame) config_.cache->unpin(client_, oldest);
  if (ring_[ring_at_] != kNoFrame) config_.cache->unpin_is_near(ring_[ring_at_]);
}

const std::byte* Translator::read_across(uintptr_t address, size_t size) {
  SPW_CHECK(size <= crossing_.size());
  counters_.add(Counter::crossing_accesses);
  read_managed(address, crossing_.data(), size);
  return crossing_.data();
}

void Translator::write_across(uintptr_t address, const std::byte* bytes, size_t size) {
  if (crosses_block(address, size)) counters_.add(Counter::crossing_accesses);
  write_managed(address, bytes, size);
}

// Two blocks at most: kFewBytesMax bytes are less than a block.
void Translator::read_managed(uintptr_t address, std::byte* bytes, size_t size) {
  const size_t first = std::min<size_t>(size, block_bytes() - offset_of(address));
  copy_few_bytes(bytes, translate(address, false), first);
  if (first < size) copy_few_bytes(bytes + first, translate(address + first, false), size - first);
}

void Translator::write_managed(uintptr_t address, const std::byte* bytes, size_t size) {
  const size_t first = std::min<size_t>(size, block_bytes() - offset_of(address));
  copy_few_bytes(translate(address, true), bytes, first);
  if (first < size) copy_few_bytes(translate(address + first, true), bytes + first, size - first);
}

// Blocks that were first touched one after the other mostly have frames side by side.
std::byte* Translator::span(uintptr_t address, size_t size, bool store) {
  std::byte* first = translate(address, store);
  const uint64_t room = block_bytes() - offset_of(address);
  if (size <= room) return first;
  SPW_CHECK(size - room <= block_bytes());
  return translate(address + room, store) == first + room ? first : nullptr;
}

void Translator::copy_few(void* to, const void* from, size_t size) {
  std::byte copy[kFewBytesMax];
  SPW_CHECK(size <= sizeof copy);
  if (size == 0) return;  // neither address need be one of an object
  if (is_managed(from))
    read_managed(reinterpret_cast<uintptr_t>(from), copy, size);
  else
    copy_few_bytes(copy, from, size);
  if (is_managed(to))
    write_managed(reinterpret_cast<uintptr_t>(to), copy, size);
  else
    copy_few_bytes(to, copy, size);
}

access::Window Translator::open_window(uintptr_t address, size_t max_bytes, Access access) {
  size_t bytes = std::min<size_t>(max_bytes, block_bytes() - offset_of(address));
  bool whole = access == Access::kOverwrite && bytes == block_bytes();
  std::byte* data =
      whole ? lookup(block_of(address), access).data : translate(address, access != Access::kRead);
  return {data, bytes, kNoFrame};
}

access::Window Translator::pin_window(uintptr_t address, size_t max_bytes, Access access) {
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
  // Without a private SATC the window holds a pin of its own.
  slot->orphaned = !has_private();
  if (slot->orphaned) pin_into(entry, block_of(address), access);
  ++slot->holders;
  return {entry.data + offset_of(address), bytes, entry.frame};
}

bool Translator::unpin_window(const access::Window& window) {
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
  drop_direct(first, count);
  private_.remove_range(first, count,
                        [this](BlockId block, const SatcEntry& entry) { evicted(block, entry); });
}

void Translator::flush() {
  drop_direct(BlockId(0), UINT64_MAX);
  private_.clear([this](BlockId block, const SatcEntry& entry) { evicted(block, entry); });
  let_leave();
  for (FrameId& frame : ring_) {
    if (frame != kNoFrame) config_.cache->unpin(client_, frame);
    frame = kNoFrame;
  }
}

}  // namespace spw::access
