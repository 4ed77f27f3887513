#include "front/mapped/engine.h"

#include <algorithm>

#include "abi/managed.h"
#include "base/check.h"
#include "base/in_runtime.h"
#include "base/units.h"
#include "cache/client_thread.h"
#include "platform/futex.h"
#include "telemetry/counters.h"

namespace spw::front {

using cache::Access;
using telemetry::count;
using telemetry::Counter;

namespace {

// The entry points are C functions without a context: they find the engine here. Written once at start.
Atomic<MappedEngine*> g_engine{nullptr};

// All threads together; each is a block that cannot be evicted.
constexpr uint32_t kHeldWindowsMax = 16;

Access access_of(bool is_store) { return is_store ? Access::kWrite : Access::kRead; }

}  // namespace

struct MappedEngine::Thread {
  cache::Client* client = nullptr;
  cache::Client* fault_client = nullptr;  // opened by the first signal
  unsigned held_windows = 0;
};

namespace {
thread_local void* t_thread = nullptr;
thread_local uintptr_t t_tried_again = 0;  // the page of the last fault that found nothing to admit
}  // namespace

Result<std::unique_ptr<MappedEngine>> MappedEngine::create(const MappedOptions& options) {
  std::unique_ptr<MappedEngine> engine(new MappedEngine(options));
  auto faults = platform::UserFault::open(options.scope, options.delivery);
  if (!faults) return faults.status();
  engine->faults_ = std::move(*faults);
  auto space = platform::reserve_range(SPW_MANAGED_BASE, SPW_MANAGED_BYTES);
  if (!space) return space.status();
  engine->space_ = std::move(*space);
  if (Status status = engine->try_registration(); !status)
    return Status(status.error(), std::string(status.context()) +
                                      " (the mapped engine needs ulimit -v and ulimit -d to be unlimited)");
  // A huge page would take memory for blocks that are not resident; kernels without them refuse the advice.
  (void)platform::advise(engine->space_.data(), options.space_bytes, platform::Advice::kNoHugePage);
  auto hints = HintTable::create(options.block_shift, options.space_bytes);
  if (!hints) return hints.status();
  engine->hints_ = std::move(*hints);
  return engine;
}

MappedEngine::~MappedEngine() {
  uint32_t was = kNotWatched;
  if (watch_.cas_strong_acq_rel(was, kNeverWatched)) platform::futex_wake_all(watch_);
  watcher_.join();
  if (room_) room_->stop();
  if (server_) server_->stop();
  if (!cache_) return;
  if (t_thread) thread_ended(t_thread);
  g_engine.store_release(nullptr);
  for (FaultClient& fault_client : fault_clients_) cache_->close_client(fault_client.client);
  pthread_key_delete(key_);
}

Result<std::unique_ptr<cache::FrameSource>> MappedEngine::make_frames() {
  auto frames = MappedFrames::create(space_.data(), faults_, hints_,
                                     {options_.block_shift, options_.staging_runs_max, options_.fatal});
  if (!frames) return frames.status();
  frames_ = frames->get();
  return std::unique_ptr<cache::FrameSource>(std::move(*frames));
}

Status MappedEngine::start(cache::SharedCache& cache, region::RegionMap& regions) {
  cache_ = &cache;
  regions_ = &regions;
  SPW_CHECK(frames_ && pthread_key_create(&key_, &MappedEngine::thread_ended) == 0);
  const bool has_server = faults_.delivery() == platform::FaultDelivery::kEvents;
  if (has_server) fault_clients_ = std::vector<FaultClient>(options_.faults.workers);
  for (FaultClient& fault_client : fault_clients_) {
    auto client = cache.open_client(cache::Uses::kUnseen);
    if (!client) return client.status();
    fault_client.client = *client;
  }
  SPW_CHECK(g_engine.load_relaxed() == nullptr);
  g_engine.store_release(this);  // pairs with the acquire in the entry points: they see a whole engine
  server_ = std::make_unique<FaultServer>(faults_, options_.faults,
                                          [this](const platform::FaultEvent& event) { serve(event); });
  if (has_server)
    if (Status status = server_->start(); !status) return status;
  room_ = std::make_unique<RoomKeeper>(cache, hint_switch_, options_.room);
  if (Status status = room_->start(); !status) return status;
  // System calls that had begun before would meet missing pages, which only faults of their own bring in.
  bool at_once = options_.watches_at_once || faults_.scope() != platform::FaultScope::kAll;
  if (!at_once) {
    if (auto pages = platform::ResidentPages::open())
      resident_pages_ = std::move(*pages);
    else
      at_once = true;
  }
  if (at_once) {
    start_watching(nullptr);
    return {};
  }
  auto watcher =
      cache::start_client_thread(cache, [this](cache::Client& client) { watch_when_wanted(client); });
  if (!watcher) return watcher.status();
  watcher_ = std::move(*watcher);
  return {};
}

uint64_t MappedEngine::metadata_bytes() const {
  // One hint byte a piece, one fault-table entry a page: as much as the live range can make the kernel hold.
  constexpr uint64_t kBytesPerPage = 1 + 8;
  return regions_->live_bytes() / kMmuPageBytes * kBytesPerPage;
}

// ---- Watching ----

// What watch() will do later is tried now, when an error can still be told.
Status MappedEngine::try_registration() {
  std::byte* base = space_.data();
  const uint64_t bytes = options_.space_bytes;
  if (Status s = platform::protect(base, bytes, platform::Protection::kReadWrite); !s) return s;
  if (Status s = platform::advise(base, bytes, platform::Advice::kDontFork); !s) return s;
  if (Status s = faults_.register_range(base, bytes); !s) return s;
  if (Status s = faults_.unregister_range(base, bytes); !s) return s;
  return platform::protect(base, bytes, platform::Protection::kNone);
}

void MappedEngine::watch() {
  if (is_watching()) return;
  check_not_forked();
  uint32_t was = kNotWatched;
  if (watch_.cas_strong_acq_rel(was, kWatchWanted)) platform::futex_wake_all(watch_);
  while (!is_watching()) platform::futex_wait(watch_, kWatchWanted);
}

// In a thread of its own, since the caller's stack may be managed, and a signal handler of the program may run on it: either
// may fault meanwhile and is served when all is adopted.
void MappedEngine::watch_when_wanted(cache::Client& client) {
  while (watch_.load_acquire() == kNotWatched) platform::futex_wait(watch_, kNotWatched);
  if (watch_.load_acquire() == kWatchWanted) start_watching(&client);
}

void MappedEngine::start_watching(cache::Client* client) {
  std::unique_lock lock(watch_mutex_);
  std::byte* base = space_.data();
  const uint64_t used = used_bytes_.load_relaxed();
  Status status = faults_.register_range(base, options_.space_bytes);
  if (status)
    status = platform::protect(base + used, options_.space_bytes - used, platform::Protection::kReadWrite);
  if (status && used > 0)
    status = Adoption{base, used, options_.block_shift, resident_pages_, faults_, *regions_, *cache_, *client}
                 .run();
  if (!status) options_.fatal(status);
  watch_.store_release(kWatched);  // pairs with the acquire before every use of the cache
  platform::futex_wake_all(watch_);
}

void MappedEngine::grow(BlockId first, uint64_t count, uint64_t live_bytes, bool has_contents) {
  if (is_watching() || grow_unwatched(first, count, live_bytes, has_contents)) return;
  watch();
}

bool MappedEngine::grow_unwatched(BlockId first, uint64_t count, uint64_t live_bytes, bool has_contents) {
  check_not_forked();
  std::shared_lock lock(watch_mutex_);
  if (is_watching()) return true;
  const uint64_t fitting_bytes =
      (uint64_t{cache_->frame_limit()} << options_.block_shift) / kFittingShare * kFittingParts;
  if (has_contents || live_bytes > fitting_bytes || pieces_.load_relaxed() >= kPiecesMax) return false;
  const uint64_t bytes = count << options_.block_shift;
  if (!platform::protect(frames_->address_of(first), bytes, platform::Protection::kReadWrite)) return false;
  const uint64_t end = (first.value << options_.block_shift) + bytes;
  used_bytes_.store_relaxed(std::max(used_bytes_.load_relaxed(), end));  // under the region map's lock
  pieces_.fetch_add_relaxed(1);
  return true;
}

bool MappedEngine::withdraw(BlockId first, uint64_t count) {
  if (is_watching()) return false;
  check_not_forked();
  std::shared_lock lock(watch_mutex_);
  if (is_watching()) return false;
  std::byte* address = frames_->address_of(first);
  const uint64_t bytes = count << options_.block_shift;
  if (Status s = platform::advise(address, bytes, platform::Advice::kDontNeed); !s) options_.fatal(s);
  if (is_live(first)) return true;
  // Where that fails (vm.max_map_count) it stays accessible, like memory on libc's free lists.
  (void)platform::protect(address, bytes, platform::Protection::kNone);
  pieces_.fetch_sub_relaxed(1);
  return true;
}

// ---- Threads ----

MappedEngine::Thread& MappedEngine::this_thread() {
  if (t_thread) [[likely]]
    return *static_cast<Thread*>(t_thread);
  return register_thread();
}

MappedEngine::Thread& MappedEngine::register_thread() {
  InRuntime guard;
  check_not_forked();
  auto* thread = new Thread{&open_client(cache::Uses::kSeen)};
  t_thread = thread;
  pthread_setspecific(key_, thread);
  return *thread;
}

cache::Client& MappedEngine::open_client(cache::Uses uses) {
  auto client = cache_->open_client(uses);
  if (!client) options_.fatal(client.status());
  return **client;
}

void MappedEngine::thread_ended(void* ended) {
  InRuntime guard;
  auto* thread = static_cast<Thread*>(ended);
  t_thread = nullptr;
  if (MappedEngine* engine = g_engine.load_acquire(); engine && !engine->forked_) {
    engine->cache_->close_client(thread->client);
    if (thread->fault_client) engine->cache_->close_client(thread->fault_client);
  }
  delete thread;
}

void MappedEngine::check_not_forked() const {
  if (forked_) options_.fatal(region::touched_in_child());
}

// The descriptor is one for the parent's address space: nothing that the child does may reach it.
void MappedEngine::forked() {
  forked_ = true;
  t_thread = nullptr;
  faults_ = platform::UserFault();
}

cache::Client& MappedEngine::client() { return *this_thread().client; }

// ---- Faults ----

BlockId MappedEngine::block_of(uintptr_t address) const {
  return BlockId((address - SPW_MANAGED_BASE) >> options_.block_shift);
}

bool MappedEngine::is_live(BlockId block) const { return regions_->locate_for_fill(block).store != nullptr; }

bool MappedEngine::may_store(uintptr_t address) const {
  return regions_->kind_at(address) != region::Kind::kReadOnlyFile;
}

bool MappedEngine::may_access(uintptr_t address, bool is_store) const {
  return is_live(block_of(address)) && (!is_store || may_store(address));
}

// There are as many as workers, so one is idle.
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

void MappedEngine::serve(const platform::FaultEvent& event) {
  if (!is_watching()) watch();  // waits for who is about it
  if (refuse_wrong(event)) return;
  FaultClient& fault_client = take_fault_client(event.thread);
  bring_in(*fault_client.client, event);
  fault_client.busy.store_release(false);
}

// In a signal handler.
bool MappedEngine::bring_in_fault(uintptr_t address, bool is_store) {
  if (faults_.delivery() != platform::FaultDelivery::kSignal) return false;
  check_not_forked();
  InRuntime guard;
  const platform::FaultEvent event{round_down(address, kMmuPageBytes), 0, is_store, false};
  if (refuse_wrong(event)) return true;
  Thread& thread = this_thread();
  if (!thread.fault_client) thread.fault_client = &open_client(cache::Uses::kUnseen);
  bring_in(*thread.fault_client, event);
  return true;
}

void MappedEngine::bring_in(cache::Client& client, const platform::FaultEvent& event) {
  const bool by_signal = faults_.delivery() == platform::FaultDelivery::kSignal;
  const BlockId block = block_of(event.address);
  cache::Pin pin;
  // Errors end the program where they are found, but for this one: the block was freed meanwhile.
  if (!cache_->pin(client, block, access_of(event.is_store), &pin)) return refuse_freed(event);
  // A signal does not say which of the two it was: a store to what is there.
  const bool is_protected = by_signal ? event.is_store && !pin.was_miss : event.is_protected;
  count(is_protected ? Counter::protect_faults : Counter::missing_faults);
  if (pin.was_miss) count(Counter::fault_misses);
  // Filling and allow_stores() wake whoever waits. A block that was there already was made accessible by somebody else:
  // a protected page may be one that a writeback protected after the block had become dirty again.
  if (is_protected && !pin.was_clean) frames_->allow_stores({pin.frame, block});
  if (!is_protected && !pin.was_miss && !by_signal)
    faults_.wake(reinterpret_cast<void*>(event.address), kMmuPageBytes);
  cache_->unpin(client, pin.frame);
  if (pin.was_miss)
    after_miss(client, block);
  else if (pin.was_clean)
    hint_switch_.note_trip();
  if (is_protected) allow_stores_ahead(client, block);
}

// A program that stores its way through clean blocks faults at each: as many of those behind one that are there take stores as
// right before it are dirty. It costs a write of what is not stored to after all.
void MappedEngine::allow_stores_ahead(cache::Client& client, BlockId block) {
  uint64_t before = 0;
  while (before < std::min(block.value, kStoresAheadBytesMax >> options_.block_shift) &&
         hints_.get(BlockId(block.value - before - 1)) == HintTable::Hint::kGo)
    ++before;
  for (uint64_t ahead = 1; ahead <= before; ++ahead) {
    const BlockId next = block + ahead;
    const region::Kind kind = regions_->kind_at(reinterpret_cast<uintptr_t>(frames_->address_of(next)));
    // A shared file gets what was stored, and nothing else.
    if (kind != region::Kind::kAnonymous && kind != region::Kind::kPrivateFile) return;
    if (hints_.get(next) != HintTable::Hint::kClean || !cache_->dirty_resident(client, next)) return;
  }
}

// What its region fills together with the block, without waiting.
void MappedEngine::after_miss(cache::Client& client, BlockId block) {
  // While frames are plentiful the first touch of memory brings its neighbours along.
  constexpr uint32_t kShortShare = 16;
  if (regions_->locate_for_fill(block).has_contents ||
      cache_->free_frames() < cache_->frame_limit() / kShortShare)
    hint_switch_.note_trip();
  const auto fill = regions_->fill_of(block);
  if (fill.count > 1) cache_->prefetch(client, fill.first, fill.count);
}

// Of a block that is being freed its page may be there until it is discarded, and be read by a writeback.
void MappedEngine::refuse_freed(const platform::FaultEvent& event) {
  const bool is_present = platform::is_page_present(event.address);
  const bool by_signal = faults_.delivery() == platform::FaultDelivery::kSignal;
  if (event.is_protected || (by_signal && event.is_store && is_present))
    return refuse(event.address, platform::Protection::kRead);
  if (is_present)
    return faults_.wake(reinterpret_cast<void*>(event.address), kMmuPageBytes);
  refuse(event.address, platform::Protection::kNone);
}

void MappedEngine::refuse(uintptr_t page, platform::Protection left) {
  void* address = reinterpret_cast<void*>(page);
  {
    std::lock_guard lock(refused_mutex_);
    refused_pages_.push_back(page);
    SPW_CHECK(platform::protect(address, kMmuPageBytes, left).is_ok());
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
    SPW_CHECK(
        platform::protect(reinterpret_cast<void*>(*page), kMmuPageBytes, platform::Protection::kReadWrite)
            .is_ok());
  refused_pages_.erase(admitted, refused_pages_.end());
  return found;
}

void MappedEngine::grown(BlockId first, uint64_t count) {
  const auto begin = reinterpret_cast<uintptr_t>(frames_->address_of(first));
  std::lock_guard lock(refused_mutex_);
  admit_pages(begin, begin + (count << options_.block_shift));
}

bool MappedEngine::admit_fault(uintptr_t address, bool is_store) {
  check_not_forked();
  const bool is_ours = InRuntime::here();
  InRuntime guard;
  const uintptr_t page = round_down(address, kMmuPageBytes);
  // The runtime may read and zero what is there of a block that is freed, though the program was refused it.
  if (!may_access(address, is_store) && !(is_ours && platform::is_page_present(address))) return false;
  std::lock_guard lock(refused_mutex_);
  const bool found = admit_pages(page, page + kMmuPageBytes);
  // Another thread may have let the page in since this one faulted: it tries once more, and then it is no fault of ours.
  const bool may_try_again = found || t_tried_again != page;
  t_tried_again = found || !may_try_again ? 0 : page;
  return may_try_again;
}

// ---- Hints ----

void MappedEngine::hint(uintptr_t address, bool is_store) {
  if (!is_managed(address) || InRuntime::here() || !is_watching()) return;
  InRuntime guard;
  check_not_forked();
  count(Counter::hint_calls);
  const BlockId block = block_of(address);
  // What is nobody's, or not to be stored to, faults, and the fault says so.
  if (!may_access(address, is_store)) return;
  cache::Client& client = *this_thread().client;
  cache::Pin pin;
  if (!cache_->pin(client, block, access_of(is_store), &pin))
    return;  // freed meanwhile, so the access faults
  if (!pin.was_miss) hints_.set(block, is_store ? HintTable::Hint::kGo : HintTable::Hint::kClean);
  cache_->unpin(client, pin.frame);
  if (pin.was_miss) {
    count(Counter::hint_misses);
    after_miss(client, block);
  } else if (pin.was_clean) {
    hint_switch_.note_trip();
    allow_stores_ahead(client, block);
  }
}

void MappedEngine::hint_range(uintptr_t address, uint64_t bytes, bool is_store) {
  // More than this is left to faults and read-ahead: what is brought in first might be evicted before it is used.
  constexpr uint64_t kHintedBytesMax = 1 * kMiB;
  if (!is_managed(address) || bytes == 0) return;
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
  const BlockId first = block_of(address);
  cache_->prefetch(*this_thread().client, first, block_of(address + length - 1).value - first.value + 1);
}

// ---- Windows ----

region::Window MappedEngine::pin(uintptr_t address, size_t max_bytes, Access access) {
  InRuntime guard;
  watch();
  const uint64_t block_bytes = uint64_t{1} << options_.block_shift;
  const size_t bytes = std::min<size_t>(max_bytes, block_bytes - address % block_bytes);
  if (access == Access::kOverwrite && bytes < block_bytes) access = Access::kWrite;
  cache::Pin pin;
  if (Status status = cache_->pin(*this_thread().client, block_of(address), access, &pin); !status)
    options_.fatal(status);
  return {reinterpret_cast<std::byte*>(address), bytes, pin.frame};
}

void MappedEngine::unpin(const region::Window& window) { cache_->unpin(*this_thread().client, window.frame); }

region::Window MappedEngine::hold(uintptr_t address, size_t max_bytes, Access access) {
  Thread& thread = this_thread();
  if (thread.held_windows == region::kWindowsPerThread) return {};
  if (held_windows_.fetch_add_relaxed(1) >= kHeldWindowsMax) {
    held_windows_.fetch_sub_relaxed(1);
    return {};
  }
  ++thread.held_windows;
  return pin(address, max_bytes, access);
}

bool MappedEngine::release(const region::Window& window) {
  Thread& thread = this_thread();
  if (thread.held_windows == 0) return false;
  unpin(window);
  --thread.held_windows;
  held_windows_.fetch_sub_relaxed(1);
  return true;
}

}  // namespace spw::front

// The entry points of abi/hints.h; trampolines.S keeps the registers of the first two.
extern "C" {

__attribute__((visibility("hidden"))) void spw_hint_load(uintptr_t address) {
  if (auto* engine = spw::front::g_engine.load_acquire()) engine->hint(address, false);
}

__attribute__((visibility("hidden"))) void spw_hint_store(uintptr_t address) {
  if (auto* engine = spw::front::g_engine.load_acquire()) engine->hint(address, true);
}

__attribute__((visibility("default"))) void __spw_hint_range_v1(uintptr_t address, uint64_t bytes,
                                                                uint64_t is_store) {
  if (auto* engine = spw::front::g_engine.load_acquire()) engine->hint_range(address, bytes, is_store != 0);
}

__attribute__((visibility("default"))) void __spw_hint_stream_v1(uintptr_t address, uint64_t bytes,
                                                                 uint64_t) {
  if (auto* engine = spw::front::g_engine.load_acquire()) engine->hint_stream(address, bytes);
}

__attribute__((visibility("default"))) extern const char SPW_HINTS_VERSION_SYMBOL;
const char SPW_HINTS_VERSION_SYMBOL = 1;
}
