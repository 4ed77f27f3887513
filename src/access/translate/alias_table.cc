#include "access/translate/alias_table.h"

#include "access/translate/map_frames.h"
#include "base/check.h"
#include "platform/memory.h"

namespace spw::access {

AliasTable::AliasTable(const TranslatorConfig& config, const platform::File& frames, uint32_t slots)
    : config_(config), frames_(frames), slots_(slots) {
  SPW_CHECK(slots > 0 && slots <= kAliasSlotsMax);
}

AliasTable::Slot* AliasTable::find(BlockId block) {
  for (Slot& slot : slots_)
    if (slot.used && slot.block == block) return &slot;
  return nullptr;
}

Status AliasTable::map(const Slot& slot) {
  return map_frames(address_of(slot.block), frames_, slot.frame, block_bytes(), config_.block_shift,
                    slot.writable);
}

Status AliasTable::vacate(cache::Client& client, Slot& slot) {
  if (Status status = platform::release_at(address_of(slot.block), block_bytes()); !status) return status;
  slot.used = false;
  config_.cache->unpin(client, slot.frame);
  return {};
}

Status AliasTable::admit(cache::Client& client, uintptr_t address, bool store) {
  BlockId block((address - SPW_MANAGED_BASE) >> config_.block_shift);
  std::lock_guard lock(mutex_);
  if (Slot* slot = find(block)) {
    if (!store || slot->writable) return {};  // another thread was quicker
    config_.cache->mark_dirty(client, slot->frame);
    slot->writable = true;
    return map(*slot);
  }
  Slot& slot = slots_[hand_];
  hand_ = (hand_ + 1) % slots_.size();
  if (slot.used)
    if (Status status = vacate(client, slot); !status) return status;
  cache::Pin pin;
  Status pinned =
      config_.cache->pin(client, block, store ? cache::Access::kWrite : cache::Access::kRead, &pin);
  if (!pinned) return pinned;
  slot = {true, store, block, pin.frame};
  return map(slot);
}

void AliasTable::withdraw(cache::Client& client, uintptr_t address, uint64_t bytes) {
  BlockId first((address - SPW_MANAGED_BASE) >> config_.block_shift);
  BlockId last((address + bytes - 1 - SPW_MANAGED_BASE) >> config_.block_shift);
  std::lock_guard lock(mutex_);
  for (Slot& slot : slots_) {
    if (!slot.used || slot.block < first || slot.block > last) continue;
    if (Status status = vacate(client, slot); !status) config_.fatal(status);
  }
}

}  // namespace spw::access
