#include "access/mapped/hint_table.h"

#include <bit>
#include <cstring>

#include "abi/abi.h"
#include "access/version_switch.h"
#include "base/units.h"

namespace spw::access {

namespace {
static_assert(SPW_HINT_SWITCH == SPW_HINT_OFFSET);
constexpr unsigned kExtentShift = std::countr_zero(kHugePageBytes);
constexpr uintptr_t kExtentPieces = kHugePageBytes >> SPW_HINT_SHIFT;
}  // namespace

Result<HintTable> HintTable::create(unsigned block_shift, uint64_t space_bytes) {
  // The rest stays read-only: writable memory counts against limits.
  std::byte* first = reinterpret_cast<std::byte*>(&byte_at(SPW_MANAGED_BASE));
  for (Status status :
       {access::VersionSwitch::make_writable(),
        platform::protect(first, space_bytes >> SPW_HINT_SHIFT, platform::Protection::kReadWrite)})
    if (!status) return status;
  HintTable table;
  table.block_shift_ = block_shift;
  auto ready = platform::map_anonymous(round_up((space_bytes >> kExtentShift) + 1, kMmuPageBytes));
  if (!ready) return ready.status();
  table.ready_ = std::move(*ready);
  return table;
}

uintptr_t HintTable::address_of(BlockId block) const {
  return SPW_MANAGED_BASE + (block.value << block_shift_);
}

Atomic<uint8_t>& HintTable::ready_at(uintptr_t address) const {
  return reinterpret_cast<Atomic<uint8_t>*>(ready_.data())[(address - SPW_MANAGED_BASE) >> kExtentShift];
}

// Two threads may do so at once; the one that is late may undo the other's hints, which costs calls.
void HintTable::prepare_extent(uintptr_t address) {
  if (is_ready(address)) return;
  Byte* first = &byte_at(round_down(address, kHugePageBytes));
  for (uintptr_t i = 0; i < kExtentPieces; ++i) first[i].store_relaxed(static_cast<int8_t>(Hint::kUnseen));
  ready_at(address).store_release(1);
}

void HintTable::set(BlockId block, Hint hint) {
  const uintptr_t address = address_of(block);
  prepare_extent(address);
  Byte* first = &byte_at(address);
  const uintptr_t pieces = uintptr_t{1} << (block_shift_ - SPW_HINT_SHIFT);
  for (uintptr_t i = 0; i < pieces; ++i) first[i].store_relaxed(static_cast<int8_t>(hint));
}

void HintTable::clear_dirty(BlockId block) {
  if (byte_at(address_of(block)).load_relaxed() == static_cast<int8_t>(Hint::kGo)) set(block, Hint::kClean);
}

}  // namespace spw::access
