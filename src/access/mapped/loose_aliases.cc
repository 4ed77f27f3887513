#include "access/mapped/loose_aliases.h"

#include <algorithm>

#include "base/check.h"
#include "platform/memory.h"
#include "platform/time.h"
#include "telemetry/counters.h"

namespace spw::access {

LooseAliases::LooseAliases(const Options& options, cache::SharedCache& cache, cache::Client& client,
                           PlacedPages& pages, const platform::File& pool, const std::byte* pool_base)
    : options_(options),
      cache_(cache),
      client_(client),
      pages_(pages),
      pool_(pool),
      pool_base_(pool_base),
      slots_(options.slots) {}

LooseAliases::Slot* LooseAliases::find(BlockId block) {
  for (Slot& slot : slots_)
    if (slot.is_used() && slot.block == block) return &slot;
  return nullptr;
}

// The oldest gives way.
LooseAliases::Slot* LooseAliases::free_slot() {
  Slot* oldest = nullptr;
  for (Slot& slot : slots_) {
    if (!slot.is_used()) return &slot;
    if (slot.kept == 0 && (!oldest || slot.since_ns < oldest->since_ns)) oldest = &slot;
  }
  if (oldest) vacate(*oldest);
  return oldest;
}

// Some slots are left to faults, which cannot do without: who sleeps at the others may wait for the thread that faults.
bool LooseAliases::may_keep(const Slot* slot) const {
  if (slot && slot->kept > 0) return true;
  return std::ranges::count_if(slots_, [](const Slot& s) { return s.kept > 0; }) + kSlotsOfFaults <
         std::ssize(slots_);
}

// A forked child would store to its parent's block.
void LooseAliases::map(const Slot& slot) {
  must(platform::map_file_unforked_at(
      address_of(slot.block), pool_, slot.offset_bytes, block_bytes(),
      slot.writable ? platform::Protection::kReadWrite : platform::Protection::kRead));
  must(pages_.limit_alias(address_of(slot.block), block_bytes(), rights_of(slot)));
}

void LooseAliases::open_to_stores(Slot& slot) {
  cache_.mark_dirty(client_, slot.frame);
  slot.writable = true;
  must(platform::protect(address_of(slot.block), block_bytes(), platform::Protection::kReadWrite));
  must(pages_.limit_alias(address_of(slot.block), block_bytes(), rights_of(slot)));
}

bool LooseAliases::admit(BlockId block, bool is_store, bool is_kept) {
  std::lock_guard lock(mutex_);
  Slot* slot = find(block);
  if (is_kept && !may_keep(slot)) return false;
  if (!slot) {
    slot = free_slot();
    SPW_CHECK(slot != nullptr);
    cache::Pin pin;
    // The caller holds it, so it is there, and stays where it is.
    must(cache_.pin(client_, block, is_store ? cache::Access::kWrite : cache::Access::kRead, &pin));
    *slot = {block, pin.frame, static_cast<uint64_t>(pin.data - pool_base_), platform::monotonic_ns(),
             0,     is_store};
    used_.fetch_add_relaxed(1);
    pages_.keep_open(address_of(block));
    map(*slot);
    telemetry::count(telemetry::Counter::loose_aliases);
  } else if (is_store && !slot->writable) {
    open_to_stores(*slot);
  }
  options_.uses[slot->frame.value].store_relaxed(kAliased);
  slot->kept += is_kept;
  return true;
}

void LooseAliases::let_go(BlockId block) {
  if (used_.load_relaxed() == 0) return;
  std::lock_guard lock(mutex_);
  if (Slot* slot = find(block); slot && slot->kept > 0) --slot->kept;
}

bool LooseAliases::admit_again(uintptr_t address, bool is_store, uint64_t* gone) {
  std::lock_guard lock(mutex_);  // if it is going, it has gone then
  *gone = gone_;
  Slot* slot = find(BlockId((address - reinterpret_cast<uintptr_t>(options_.base)) >> options_.block_shift));
  if (!slot || !pages_.program_allows(address, is_store)) return false;
  if (is_store && !slot->writable) open_to_stores(*slot);
  return true;
}

void LooseAliases::vacate(Slot& slot, bool is_to_be_placed) {
  std::byte* const address = address_of(slot.block);
  must(platform::release_at(address, block_bytes()));
  must(platform::advise(address, block_bytes(), platform::Advice::kDontFork));
  (void)platform::advise(address, block_bytes(), platform::Advice::kNoHugePage);
  must(pages_.renew(address, block_bytes()));
  pages_.let_close(address);
  options_.uses[slot.frame.value].store_relaxed(0);
  if (is_to_be_placed) (void)cache_.place(slot.frame);
  cache_.unpin(client_, slot.frame);
  slot = {};
  ++gone_;
  used_.fetch_sub_relaxed(1);
}

void LooseAliases::withdraw(BlockId first, uint64_t count, Kept kept) {
  if (used_.load_relaxed() == 0) return;
  std::lock_guard lock(mutex_);
  for (Slot& slot : slots_)
    if (slot.is_used() && slot.block.value - first.value < count && (kept == Kept::kGo || slot.kept == 0))
      vacate(slot);
}

void LooseAliases::withdraw_old(uint64_t now_ns) {
  if (used_.load_relaxed() == 0) return;
  std::lock_guard lock(mutex_);
  for (Slot& slot : slots_)
    if (slot.is_used() && slot.kept == 0 && now_ns - slot.since_ns >= kAliasNs) vacate(slot);
}

void LooseAliases::place(BlockId block) {
  std::lock_guard lock(mutex_);
  Slot* slot = find(block);
  if (slot && slot->kept == 0 && cache_.references(slot->frame) == 1) vacate(*slot, true);
}

}  // namespace spw::access
