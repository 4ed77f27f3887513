// Page faults of managed space, however they were delivered: who may
// access what, how a block comes in, and what is refused.
#include <algorithm>

#include "abi/managed.h"
#include "access/mapped/engine.h"
#include "base/in_runtime.h"
#include "base/need.h"
#include "base/units.h"
#include "telemetry/counters.h"

namespace spw::access {

using telemetry::count;
using telemetry::Counter;

namespace {
thread_local uintptr_t t_tried_again = 0;  // the page of the last fault that found nothing to admit
thread_local uint64_t t_tried_gone = 0;    // aliases that had gone by then
}  // namespace

BlockId MappedEngine::block_of(uintptr_t address) const {
  return BlockId((address - SPW_MANAGED_BASE) >> options_.block_shift);
}

// And has an address.
bool MappedEngine::is_live(BlockId block) const {
  return block.value < space_blocks() && regions_->locate_for_fill(block).store != nullptr;
}

bool MappedEngine::may_store(uintptr_t address) const {
  return regions_->kind_at(address) != region::Kind::kReadOnlyFile;
}

bool MappedEngine::may_access(uintptr_t address, bool is_store) const {
  return is_live(block_of(address)) && (!is_store || may_store(address));
}

// There are as many as threads that serve, so one is idle.
MappedEngine::FaultClient& MappedEngine::take_fault_client(uint32_t thread) {
  for (size_t i = thread % fault_clients_.size();; i = (i + 1) % fault_clients_.size())
    if (!fault_clients_[i].busy.exchange_acquire(true)) return fault_clients_[i];
}

// Whether it was: the program gets the SIGSEGV that the kernel would give it.
bool MappedEngine::refuse_wrong(const platform::FaultEvent& event) {
  if (!is_live(block_of(event.address)))
    refuse_freed(event);
  else if (event.is_store && !may_store(event.address))
    refuse(event.address, platform::Protection::kRead);
  else
    return false;
  return true;
}

// In a thread that may wait. It is counted.
void MappedEngine::serve(const platform::FaultEvent& event) {
  if (!is_watching()) watch();  // waits for who is about it
  if (refuse_wrong(event)) return;
  FaultClient& fault_client = take_fault_client(event.thread);
  bring_in(*fault_client.client, event);
  fault_client.busy.store_release(false);
}

// In a signal handler.
bool MappedEngine::bring_in_fault(uintptr_t address, bool is_store, bool is_own) {
  if (g_lacks_engine.load_acquire() && serve_without_engine(address, is_own)) return true;
  check_not_forked();
  if (!is_signalled()) return false;
  InRuntime guard;
  if (!is_watching()) watch();  // waits for who is about it
  if (!is_own && options_.serves_a_fault) options_.serves_a_fault();
  const platform::FaultEvent event{round_down(address, kMmuPageBytes), 0, is_store, false};
  if (refuse_wrong(event)) return true;
  bring_in(fault_client(), event);
  return true;
}

MappedEngine::Wanted MappedEngine::wanted_by(const platform::FaultEvent& event) {
  const BlockId block = block_of(event.address);
  const bool was_loaded = event.is_store && hints_.get(block) == HintTable::Hint::kLoaded;
  const cache::Access access = access_of(block, event.is_store);
  return {event, block, access, expects_store(block, access), was_loaded, false};
}

void MappedEngine::bring_in(cache::Client& client, const platform::FaultEvent& event) {
  const Wanted wanted = wanted_by(event);
  cache::Pin pin;
  // Errors end the program where they are found, but for this one: the block was freed meanwhile.
  if (!pin_expecting(client, wanted.block, wanted.access, wanted.expects_store, &pin))
    return refuse_freed(event);
  end_fault(client, event, wanted, pin, Waits::kMay);
}

// Its block is pinned.
void MappedEngine::end_fault(cache::Client& client, const platform::FaultEvent& event, const Wanted& wanted,
                             const cache::Pin& pin, Waits waits) {
  const BlockId block = wanted.block;
  if (pin.is_extent) {  // there is nothing else to be done about it
    if (is_signalled()) count(Counter::missing_faults);
    faults_.wake(reinterpret_cast<void*>(event.address), kMmuPageBytes);
    return cache_->unpin(client, pin.frame);
  }
  if (!put_in_place(block, pin, event.is_store)) return cache_->unpin(client, pin.frame);
  if (!wanted.expects_store) learn_access(block, event.is_store, wanted.access, wanted.was_loaded, pin);
  // A signal does not say which of the two it was: a store to what is there.
  const bool is_protected = is_signalled() ? event.is_store && !pin.was_miss : event.is_protected;
  if (is_signalled()) count(is_protected ? Counter::protect_faults : Counter::missing_faults);
  if (pin.was_miss) count(Counter::fault_misses);
  // Filling and allow_stores() wake whoever waits. A block that was there already was made accessible by somebody else:
  // a protected page may be one that a writeback protected after the block had become dirty again.
  if (is_protected && !pin.was_clean) {
    const cache::Resident resident{pin.frame, block};
    frames_->allow_stores({&resident, 1});
  }
  if (event.is_store && !pin.was_filled) hints_.set(block, HintTable::Hint::kGo);
  if (!is_protected && !pin.was_filled && !is_signalled())
    faults_.wake(reinterpret_cast<void*>(event.address), kMmuPageBytes);
  cache_->unpin(client, pin.frame);
  if (pin.was_miss)
    after_miss(client, block, waits);
  else if (pin.was_clean)
    hint_switch_.note_trip();
  if (is_protected) allow_stores_ahead(block);
}

// How many blocks in a row, from the one next to `block` on, take stores already.
uint64_t MappedEngine::stored_run(BlockId block, int64_t step, uint64_t most) const {
  uint64_t length = 0;
  while (length < most && hints_.get(BlockId(block.value + static_cast<uint64_t>(step) * (length + 1))) ==
                              HintTable::Hint::kGo)
    ++length;
  return length;
}

// As which a miss on the block is to be served: a load may come as a store where one follows most of the time.
cache::Access MappedEngine::access_of(BlockId block, bool is_store) {
  if (is_store || (regions_->may_write_unstored(block) && stores_.predicts_store(block)))
    return cache::Access::kWrite;
  return cache::Access::kRead;
}

// Whether what a load misses of a shared file may come with a sum, to be stored to without a fault.
bool MappedEngine::expects_store(BlockId block, cache::Access access) {
  return access == cache::Access::kRead && regions_->is_shared_file(block) && stores_.predicts_store(block);
}

Status MappedEngine::pin_expecting(cache::Client& client, BlockId block, cache::Access access,
                                   bool expects_store, cache::Pin* pin) {
  return expects_store ? cache_->pin_expecting(client, block, pin) : cache_->pin(client, block, access, pin);
}

// `was_loaded`: before it was pinned for a store, it was there because of a load and had not been stored to.
void MappedEngine::learn_access(BlockId block, bool is_store, cache::Access access, bool was_loaded,
                                const cache::Pin& pin) {
  if (is_store) {
    if (was_loaded && pin.was_clean) stores_.note_stored(block);
  } else if (pin.was_filled && access == cache::Access::kRead) {
    stores_.note_came(block);
  }
}

// A program that stores its way through clean blocks, upwards or downwards, is
// stopped at each: as many of those in front of it that are there take stores as
// right behind it are dirty. It costs a write of what is not stored to after all.
void MappedEngine::allow_stores_ahead(BlockId block) {
  const uint64_t most = kStoresAheadBytesMax >> options_.block_shift;
  const uint64_t below_max = std::min(block.value, most);
  const uint64_t above_max = std::min(space_blocks() - 1 - block.value, most);
  const uint64_t below = stored_run(block, -1, below_max);
  const bool ascends = below > 0;
  const uint64_t wanted =
      ascends ? std::min(below, above_max) : std::min(stored_run(block, 1, above_max), below_max);
  uint64_t count = 0;
  for (; count < wanted; ++count) {
    const BlockId next(ascends ? block.value + count + 1 : block.value - count - 1);
    if (hints_.get(next) == HintTable::Hint::kGo || !regions_->may_write_unstored(next)) break;
  }
  if (count > 0) cache_->dirty_resident(BlockId(ascends ? block.value + 1 : block.value - count), count);
}

// What its region fills together with the block, without waiting.
void MappedEngine::after_miss(cache::Client& client, BlockId block, Waits waits) {
  // While frames are plentiful the first touch of memory brings its neighbours along.
  constexpr uint32_t kShortShare = 16;
  if (regions_->locate_for_fill(block).has_contents ||
      cache_->free_frames() < cache_->frame_limit() / kShortShare)
    hint_switch_.note_trip();
  const auto fill = regions_->fill_of(block);
  if (fill.count <= 1) return;
  if (waits == Waits::kMay)
    cache_->prefetch(client, fill.first, fill.count);
  else
    cache_->prefetch_at_once(client, fill.first, fill.count);
}

// Of a block that is being freed its page may be there until it is discarded, and be read by a writeback. What has no
// access rights anyhow faults again, and is refused then.
void MappedEngine::refuse_freed(const platform::FaultEvent& event) {
  if (!options_.has_userfault) return;
  const bool is_present = platform::is_page_present(event.address);
  if (event.is_protected || (is_signalled() && event.is_store && is_present))
    return refuse(event.address, platform::Protection::kRead);
  if (is_present) return faults_.wake(reinterpret_cast<void*>(event.address), kMmuPageBytes);
  refuse(event.address, platform::Protection::kNone);
}

void MappedEngine::refuse(uintptr_t page, platform::Protection left) {
  telemetry::note_event(telemetry::TraceEvent::kRefused, block_of(page).value);
  void* address = reinterpret_cast<void*>(page);
  {
    std::lock_guard lock(refused_mutex_);
    refused_pages_.push_back(page);
    need(platform::protect(address, kMmuPageBytes, left));
    if (may_access(page, left == platform::Protection::kRead)) admit_pages(page, page + kMmuPageBytes);
  }
  faults_.wake(address, kMmuPageBytes);
}

// Under refused_mutex_. Whether there were any.
bool MappedEngine::admit_pages(uintptr_t begin, uintptr_t end) {
  const auto admitted = std::partition(refused_pages_.begin(), refused_pages_.end(),
                                       [&](uintptr_t page) { return page < begin || page >= end; });
  const bool found = admitted != refused_pages_.end();
  for (auto page = admitted; page != refused_pages_.end(); ++page)
    need(platform::protect(reinterpret_cast<void*>(*page), kMmuPageBytes, platform::Protection::kReadWrite));
  refused_pages_.erase(admitted, refused_pages_.end());
  return found;
}

// SIGSEGV, where pages fault by their access rights: whatever it is, it comes here.
bool MappedEngine::serve_rights_fault(uintptr_t address, bool is_store, bool is_own) {
  const bool is_program_s = may_access(address, is_store);
  if (!is_program_s && !is_own) return false;
  uint64_t gone = 0;
  if (aliases_->admit_again(address, is_store, &gone)) return true;
  if (!is_own && options_.serves_a_fault) options_.serves_a_fault();
  const Admitted admitted = pages_->admit(address, is_store);
  if (admitted != Admitted::kNot || !is_program_s) return admitted == Admitted::kYes;
  bring_in(fault_client(), {round_down(address, kMmuPageBytes), 0, is_store, false});
  return true;
}

bool MappedEngine::admit_fault(uintptr_t address, bool is_store, bool is_own) {
  if (g_lacks_engine.load_acquire() && !options_.has_userfault && serve_without_engine(address, is_own))
    return true;
  check_not_forked();
  InRuntime guard;
  if (watch_.load_acquire() == kWatchWanted) watch();  // waits for who is about it
  if (!options_.has_userfault && is_watching()) return serve_rights_fault(address, is_store, is_own);
  const uintptr_t page = round_down(address, kMmuPageBytes);
  // The runtime may read and zero what is there of a block that is freed, though the program was refused it.
  if (!may_access(address, is_store) && !(is_own && platform::is_page_present(address))) return false;
  uint64_t gone = 0;
  if (is_watching() && aliases_->admit_again(address, is_store, &gone)) return true;
  std::lock_guard lock(refused_mutex_);
  const bool found = admit_pages(page, page + kMmuPageBytes);
  // Another thread may have let the page in since this one faulted, or an alias of it may have gone meanwhile: it tries
  // once more, and then it is no fault of ours.
  const bool may_try_again = found || t_tried_again != page || t_tried_gone != gone;
  t_tried_gone = gone;
  t_tried_again = found || !may_try_again ? 0 : page;
  return may_try_again;
}

}  // namespace spw::access
