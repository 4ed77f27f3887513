#include "front/translate/alias_table.h"

#include <sys/mman.h>

#include <cerrno>

#include "base/check.h"

namespace spw::front {

AliasTable::AliasTable(const TranslatorConfig& config, int frames_fd, uint32_t slots)
    : config_(config), frames_fd_(frames_fd), slots_(slots) {
  SPW_CHECK(slots > 0 && slots <= kAliasSlotsMax);
}

AliasTable::Slot* AliasTable::find(BlockId block) {
  for (Slot& slot : slots_)
    if (slot.used && slot.block == block) return &slot;
  return nullptr;
}

Status AliasTable::map(const Slot& slot) {
  int protection = slot.writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* mapped = ::mmap(address_of(slot.block), block_bytes(), protection, MAP_SHARED | MAP_FIXED, frames_fd_,
                        static_cast<off_t>(uint64_t{slot.frame.value} << config_.block_shift));
  if (mapped == MAP_FAILED) return Status(errno, "cannot map a block for code that was not recompiled");
  ::madvise(mapped, block_bytes(), MADV_DONTFORK);
  return {};
}

Status AliasTable::vacate(cache::Client& client, Slot& slot) {
  void* blocked = ::mmap(address_of(slot.block), block_bytes(), PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (blocked == MAP_FAILED)
    return Status(errno, "cannot withdraw a block from code that was not recompiled");
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

}  // namespace spw::front
