// What recompiled code asks for (abi/hints.h): that a block be there, or where it is.
#include <algorithm>

#include "abi/managed.h"
#include "access/mapped/engine.h"
#include "base/check.h"
#include "base/in_runtime.h"
#include "base/units.h"
#include "telemetry/counters.h"

namespace spw::access {

using cache::Access;
using telemetry::count;
using telemetry::Counter;

void MappedEngine::hint(uintptr_t address, bool is_store) {
  if (!is_managed(address) || InRuntime::here() || !is_watching()) return;
  InRuntime guard;
  check_not_forked();
  count(Counter::hint_calls);
  const BlockId block = block_of(address);
  // What is nobody's, or not to be stored to, faults, and the fault says so.
  if (!may_access(address, is_store)) return;
  cache::Client& client = *this_thread().client;
  const cache::Access access = access_of(block, is_store);
  const bool expects = expects_store(block, access);
  const bool was_loaded = is_store && hints_.get(block) == HintTable::Hint::kLoaded;
  cache::Pin pin;
  if (!pin_expecting(client, block, access, expects, &pin)) return;  // freed meanwhile, so the access faults
  if (pin.is_extent) return cache_->unpin(client, pin.frame);
  const Access as = expects && pin.was_filled ? Access::kWrite : access;
  if (cache_->place(pin.frame)) note_hinted(block, is_store, as, was_loaded, pin);
  cache_->unpin(client, pin.frame);
  after_hint(client, block, pin);
}

// A placed block, which is pinned, is about to be accessed.
void MappedEngine::note_hinted(BlockId block, bool is_store, Access access, bool was_loaded,
                               const cache::Pin& pin) {
  learn_access(block, is_store, access, was_loaded, pin);
  if (pin.was_filled) return;
  const auto clean =
      HintTable::is_along(hints_.get(block)) ? HintTable::Hint::kAlong : HintTable::Hint::kClean;
  hints_.set(block, access == Access::kWrite ? HintTable::Hint::kGo : clean);
}

void MappedEngine::after_hint(cache::Client& client, BlockId block, const cache::Pin& pin) {
  if (pin.was_miss) {
    count(Counter::hint_misses);
    after_miss(client, block, Waits::kMay);
  } else if (pin.was_clean) {
    hint_switch_.note_trip();
    allow_stores_ahead(block);
  }
}

// ---- Loose blocks ----

uintptr_t MappedEngine::reach(uintptr_t address, uint32_t bytes, uint32_t site, bool is_store) {
  if (!is_managed(address) || InRuntime::here() || !is_watching()) return address;
  if (bytes == SPW_FOR_A_CALL) {
    end_holds();
    hint(address, is_store);
    return address;
  }
  const BlockId block = block_of(address);
  // Neighbours need not lie side by side but at their own addresses.
  const uintptr_t last = address + bytes - 1;
  if (!may_come_loose() || block_of(last) != block) {
    if (site == 0 && !may_come_loose()) end_holds();
    hint(address, is_store);
    if (block_of(last) != block) hint(last, is_store);
    return address;
  }
  Thread& thread = this_thread();
  if (site >= thread.holds_max || is_in_handler(thread)) {
    hint(address, is_store);
    return address;
  }
  InRuntime guard;
  check_not_forked();
  count(Counter::hint_calls);
  const uintptr_t raw = reach_block(thread, block, site, is_store);
  return raw == 0 ? address : raw + (address & ((uint64_t{1} << options_.block_shift) - 1));
}

// Where the block is; 0: at its own address, or the access to it is to fault.
uintptr_t MappedEngine::reach_block(Thread& thread, BlockId block, uint32_t site, bool is_store) {
  cache::Client& client = *thread.client;
  if (LooseHold* hold = thread.holds.begin(*cache_, client, site, block)) {
    if (is_store && !hold->is_writable) {
      if (!may_store(reinterpret_cast<uintptr_t>(frames_->address_of(block)))) return 0;
      cache_->mark_dirty(client, hold->frame);
      hold->is_writable = true;
    }
    const auto raw = reinterpret_cast<uintptr_t>(hold->data);
    return last_ends_in_place(thread, is_store) ? 0 : raw;
  }
  cache_->pin_is_near(block);
  if (!may_access(reinterpret_cast<uintptr_t>(frames_->address_of(block)), is_store)) return 0;
  const Access access = access_of(block, is_store);
  const bool was_loaded = is_store && hints_.get(block) == HintTable::Hint::kLoaded;
  cache::Pin pin;
  if (!cache_->pin_loose(client, block, access, &pin)) return 0;  // freed meanwhile, so the access faults
  if (pin.is_extent) {
    cache_->unpin(client, pin.frame);
    return 0;
  }
  if (!is_loose(block, pin)) {
    note_hinted(block, is_store, access, was_loaded, pin);
    cache_->unpin(client, pin.frame);
    after_hint(client, block, pin);
    return 0;
  }
  if (pin.was_filled) {
    count(Counter::loose_fills);
    loose_uses_[pin.frame.value].store_relaxed(0);
  }
  thread.holds.add({block, pin.frame, pin.data, site, access != Access::kRead});
  const bool goes = last_ends_in_place(thread, is_store);
  if (pin.was_miss) after_hint(client, block, pin);
  return goes ? 0 : reinterpret_cast<uintptr_t>(pin.data);
}

// The thread's last hold is of a loose block that is used once more: whether it has ended, since the block can be
// accessed at its own address. Of one that has an alias nobody gets a hold anew: the last one who held it places it.
bool MappedEngine::last_ends_in_place(Thread& thread, bool is_store) {
  const LooseHold held = thread.holds.last();
  if (!goes_in_place(thread, held, is_store)) return false;
  const bool is_last = loose_uses_[held.frame.value].load_relaxed() == LooseAliases::kAliased &&
                       cache_->references(held.frame) <= 2;
  thread.holds.forget_last();
  cache_->unpin(*thread.client, held.frame);
  if (is_last) aliases_->place(held.block);
  return true;
}

// It has been placed, or, since others hold it as well, has an alias. Uses by several threads at once may count as one.
bool MappedEngine::goes_in_place(const Thread& thread, const LooseHold& held, bool is_store) {
  const FrameId frame = held.frame;
  Atomic<uint8_t>& uses = loose_uses_[frame.value];
  const uint8_t before = uses.load_relaxed();
  if (before == LooseAliases::kAliased) return true;
  if (before + 1 < kLooseUsesMax) uses.store_relaxed(static_cast<uint8_t>(before + 1));
  if (before + 1 < kLooseUsesMax || pages_->is_crowded()) return false;
  if (cache_->place(frame)) {
    uses.store_relaxed(0);
    return true;
  }
  if (!may_come_loose()) return false;
  // Not one that is only being written, or that this thread holds at another site.
  return cache_->references(frame) > thread.holds.count_of(held.block) && aliases_->has_room() &&
         aliases_->admit(held.block, is_store, false);
}

// Who has faulted on the block has it pinned. False: it is an alias.
bool MappedEngine::put_in_place(BlockId block, const cache::Pin& pin, bool is_store) {
  if (cache_->place(pin.frame)) return true;
  SPW_CHECK(aliases_->admit(block, is_store, false));
  return false;
}

// What this thread used the raw addresses of, it used before it called; unless a handler calls, whose interrupted code
// goes on with them.
void MappedEngine::end_holds() {
  if (!t_thread) return;
  InRuntime guard;
  Thread& thread = this_thread();
  if (!is_in_handler(thread)) thread.holds.end_all(*cache_, *thread.client);
}

bool MappedEngine::withdraw_loose(BlockId first, uint64_t count) {
  end_holds();
  aliases_->withdraw(first, count, LooseAliases::Kept::kGo);
  return false;
}

void MappedEngine::before_flush(BlockId first, uint64_t count) {
  end_holds();
  aliases_->withdraw(first, count, LooseAliases::Kept::kStay);
}

std::optional<int> MappedEngine::program_protects(uintptr_t address, size_t bytes, int protection) {
  check_not_forked();
  loose_ended_.store_relaxed(true);
  if (bytes == 0) return std::nullopt;
  const uint64_t offset = address - SPW_MANAGED_BASE;
  if (offset >= options_.space_bytes || bytes > options_.space_bytes - offset) return ENOMEM;
  const bool is_own = InRuntime::here();
  InRuntime guard;
  const BlockId first = block_of(address);
  const uint64_t count = blocks_of(address, bytes);
  if (is_watching()) cache_->keep_small(*this_thread().client, first, count);
  if (is_watching() && !is_own) place_all(first, count);
  std::shared_lock lock(watch_mutex_);
  return pages_->program_protects(address, bytes, protection, [&] {
    if (is_watching()) cache_->await_writes(*this_thread().client, first, count);
  });
}

void MappedEngine::keep_in_place(uintptr_t address, size_t bytes) {
  InRuntime guard;
  loose_ended_.store_relaxed(true);
  const BlockId first = block_of(address);
  if (is_watching()) place_all(first, blocks_of(address, bytes));
}

void MappedEngine::keep_open(uintptr_t address, size_t bytes) {
  InRuntime guard;
  if (!is_watching()) return;
  pages_->keep_open_until_released(frames_->address_of(block_of(address)), blocks_of(address, bytes)
                                                                               << options_.block_shift);
}

// Blocks of the range that are loose, but for those that other threads hold.
void MappedEngine::place_all(BlockId first, uint64_t count) {
  (void)withdraw_loose(first, count);
  cache::Client& client = *this_thread().client;
  for (uint64_t i = 0; i < count; ++i) {
    cache::Pin pin;
    if (!cache_->is_resident(first + i) || !cache_->pin_present(client, first + i, Access::kRead, &pin))
      continue;
    (void)cache_->place(pin.frame);
    cache_->unpin(client, pin.frame);
  }
}

// So many that each partition can always evict, whatever all threads hold.
uint32_t MappedEngine::take_holds() {
  const uint32_t most = cache_->frames_per_partition() / kHoldsShare;
  for (const uint32_t wanted : {uint32_t{SPW_REACHES_MAX}, 1u}) {
    if (loose_holds_.fetch_add_relaxed(wanted) + wanted <= most) return wanted;
    loose_holds_.fetch_sub_relaxed(wanted);
  }
  return 0;
}

int MappedEngine::handler_begins(const HandlerStack& stack) {
  if (!t_thread) return 0;
  Thread& thread = this_thread();
  if (thread.handlers == 0 || thread.handler.is_left(stack.interrupted)) {
    thread.handlers = 0;
    thread.handler = stack;
  }
  return ++thread.handlers;
}

void MappedEngine::handler_ends(int level) {
  if (level > 0) this_thread().handlers = level - 1;
}

// A handler may be left by a jump, of which nobody tells.
bool MappedEngine::is_in_handler(Thread& thread) const {
  if (thread.handlers > 0 && thread.handler.is_left(reinterpret_cast<uintptr_t>(__builtin_frame_address(0))))
    thread.handlers = 0;
  return thread.handlers > 0;
}

// ---- Ranges ----

void MappedEngine::hint_range(uintptr_t address, uint64_t bytes, bool is_store) {
  // More than this is left to faults and read-ahead: what is brought in first might be evicted before it is used.
  constexpr uint64_t kHintedBytesMax = 1 * kMiB;
  if (!is_managed(address) || bytes == 0) return;
  if (!InRuntime::here() && is_watching()) end_holds();  // a call comes next
  const uintptr_t end = address + std::min(bytes, kHintedBytesMax);
  for (uintptr_t at = address; at < end; at = round_down(at, kMmuPageBytes) + kMmuPageBytes)
    if (HintTable::wants_call(at, is_store)) hint(at, is_store);
}

void MappedEngine::hint_stream(uintptr_t address, uint64_t bytes) {
  // A stream's first blocks; its misses keep it going.
  constexpr uint64_t kAheadBytes = 1 * kMiB;
  if (!is_managed(address) || bytes == 0 || InRuntime::here() || !is_watching()) return;
  InRuntime guard;
  const uint64_t length = std::min(bytes, kAheadBytes);
  cache_->prefetch(*this_thread().client, block_of(address), blocks_of(address, length));
}

}  // namespace spw::access

// The entry points of abi/hints.h; trampolines.S keeps the registers of the first four.
namespace {
uint32_t bytes_of(uint64_t what) { return what & ((uint32_t{1} << SPW_SITE_SHIFT) - 1); }
uint32_t site_of(uint64_t what) { return static_cast<uint32_t>(what >> SPW_SITE_SHIFT); }
}  // namespace

extern "C" {

__attribute__((visibility("hidden"))) void spw_hint_load(uintptr_t address) {
  if (auto* engine = spw::access::g_engine.load_acquire()) engine->hint(address, false);
}

__attribute__((visibility("hidden"))) void spw_hint_store(uintptr_t address) {
  if (auto* engine = spw::access::g_engine.load_acquire()) engine->hint(address, true);
}

__attribute__((visibility("hidden"))) uintptr_t spw_reach_load(uintptr_t address, uint64_t what) {
  auto* engine = spw::access::g_engine.load_acquire();
  return engine ? engine->reach(address, bytes_of(what), site_of(what), false) : address;
}

__attribute__((visibility("hidden"))) uintptr_t spw_reach_store(uintptr_t address, uint64_t what) {
  auto* engine = spw::access::g_engine.load_acquire();
  return engine ? engine->reach(address, bytes_of(what), site_of(what), true) : address;
}

__attribute__((visibility("default"))) void __spw_hint_range_v1(uintptr_t address, uint64_t bytes,
                                                                uint64_t is_store) {
  if (auto* engine = spw::access::g_engine.load_acquire()) engine->hint_range(address, bytes, is_store != 0);
}

__attribute__((visibility("default"))) void __spw_hint_stream_v1(uintptr_t address, uint64_t bytes,
                                                                 uint64_t) {
  if (auto* engine = spw::access::g_engine.load_acquire()) engine->hint_stream(address, bytes);
}

__attribute__((visibility("default"))) extern const char SPW_HINTS_VERSION_SYMBOL;
const char SPW_HINTS_VERSION_SYMBOL = 1;
}
