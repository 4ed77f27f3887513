#include "access/mapped/engine.h"

#include <algorithm>

#include "abi/managed.h"
#include "access/mapped/begun_faults.h"
#include "access/mapped/moved_extents.h"
#include "access/mapped/protected_pages.h"
#include "access/mapped/userfault_pages.h"
#include "base/check.h"
#include "base/in_runtime.h"
#include "base/units.h"
#include "cache/client_thread.h"
#include "cache/extents/extent_mover.h"
#include "platform/async_contexts.h"
#include "platform/futex.h"
#include "telemetry/counters.h"

namespace spw::access {

using cache::Access;

namespace {

// All threads together; each is a block that cannot be evicted.
constexpr uint32_t kHeldWindowsMax = 16;
constexpr uint32_t kKeptMax = 64;  // blocks that threads sleep at, and of the frames a share
constexpr uint32_t kKeptShare = 16;
constexpr uint32_t kAliasShare = 16;  // of a partition's frames

}  // namespace

constinit Atomic<MappedEngine*> g_engine{nullptr};
constinit thread_local void* t_thread = nullptr;

Result<std::unique_ptr<MappedEngine>> MappedEngine::create(const MappedOptions& options) {
  std::unique_ptr<MappedEngine> engine(new MappedEngine(options));
  if (options.has_userfault)
    if (Status status = engine->open_faults(); !status) return status;
  auto space = platform::reserve_range(SPW_MANAGED_BASE, SPW_MANAGED_BYTES);
  if (!space) return space.status();
  engine->space_ = std::move(*space);
  std::byte* const base = engine->space_.data();
  if (Status s = platform::advise(base, options.space_bytes, platform::Advice::kDontFork); !s) return s;
  // The kernel would walk over all of it, for hours (let_dump()).
  if (Status s = platform::advise(base, options.space_bytes, platform::Advice::kDontDump); !s) return s;
  auto pages = options.has_userfault ? UserFaultPages::create(engine->faults_, base, options.space_bytes)
                                     : ProtectedPages::create(base, options.space_bytes, options.block_shift);
  if (!pages && pages.status().error() != ENOMEM) return pages.status();
  if (!pages)
    return Status(ENOMEM, std::string(pages.status().context()) +
                              " (the mapped engine needs ulimit -v and ulimit -d to be unlimited)");
  engine->pages_ = std::move(*pages);
  auto hints = HintTable::create(options.block_shift, options.space_bytes);
  if (!hints) return hints.status();
  engine->hints_ = std::move(*hints);
  if (Status status = engine->mark_process(); !status) return status;
  return engine;
}

void MappedEngine::stop() {
  uint32_t was = kNotWatched;
  if (watch_.cas_strong_acq_rel(was, kNeverWatched)) platform::futex_wake_all(watch_);
  watcher_.join();
  if (room_) room_->stop();
  if (server_) server_->stop();
}

MappedEngine::~MappedEngine() {
  stop();
  if (!cache_) return;
  if (t_thread) thread_ended(t_thread);
  g_engine.store_release(nullptr);
  for (FaultClient& fault_client : fault_clients_) cache_->close_client(fault_client.client);
  if (aliases_) {
    aliases_->withdraw(BlockId(0), space_blocks(), LooseAliases::Kept::kGo);
    cache_->close_client(alias_client_);
  }
  pthread_key_delete(key_);
}

Result<std::unique_ptr<cache::FrameSource>> MappedEngine::make_frames(uint32_t frame_count) {
  auto frames = MappedFrames::create(
      space_.data(), *pages_, hints_,
      {options_.block_shift, space_blocks(), frame_count, options_.staging_runs_max, options_.fatal});
  if (!frames) return frames.status();
  frames_ = frames->get();
  loose_uses_ = std::make_unique<Atomic<uint8_t>[]>(frame_count);
  return std::unique_ptr<cache::FrameSource>(std::move(*frames));
}

Result<std::unique_ptr<cache::ExtentMemory>> MappedEngine::make_extents(uint32_t frame_count,
                                                                        uint32_t share) {
  const uint32_t slots = cache::ExtentMover::slots_for(frame_count, options_.block_shift, share);
  if (slots == 0 || !options_.has_userfault)
    return Status::sentence(ENOTSUP, "extents need userfaultfd, and more memory");
  auto made = MovedExtents::create(faults_, hints_, space_.data(), options_.block_shift,
                                   BlockId(space_blocks()), slots);
  if (!made) return made.status();
  return std::unique_ptr<cache::ExtentMemory>(std::move(*made));
}

Status MappedEngine::start(cache::SharedCache& cache, region::RegionMap& regions) {
  cache_ = &cache;
  regions_ = &regions;
  SPW_CHECK(frames_ && pthread_key_create(&key_, &MappedEngine::thread_ended) == 0);
  SPW_CHECK(g_engine.load_relaxed() == nullptr);
  g_engine.store_release(this);  // pairs with the acquire in the entry points: they see a whole engine
  if (event_faults_.is_open())
    if (Status status = start_server(); !status) return status;
  // Where that is settled, calls need not copy before memory is watched, either.
  if (options_.faults_by == FaultChoice::kEvents && faults_.scope() == platform::FaultScope::kAll &&
      options_.kernel_reaches)
    options_.kernel_reaches();
  room_ = std::make_unique<cache::PageCleaner>(cache, options_.room, [this] { look(); });
  if (Status status = open_aliases(); !status) return status;
  if (Status status = room_->start(); !status) return status;
  bool at_once = options_.watches_at_once;
  if (!at_once || is_watched_child_) {
    if (auto pages = platform::ResidentPages::open())
      resident_pages_ = std::move(*pages);
    else if (is_watched_child_)
      return pages.status();
    else
      at_once = true;
  }
  if (is_watched_child_) {
    cache::Client& client = open_client(cache::Uses::kUnseen);
    start_watching(&client);
    cache.close_client(&client);
    return {};
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

// Every few milliseconds, by one thread.
void MappedEngine::look() {
  const uint64_t now_ns = platform::monotonic_ns();
  hint_switch_.look(now_ns);
  aliases_->withdraw_old(now_ns);
  if (now_ns >= next_look_at_layers_ns_) look_at_layers(now_ns);
}

Status MappedEngine::open_aliases() {
  auto client = cache_->open_client(cache::Uses::kUnseen);
  if (!client) return client.status();
  alias_client_ = *client;
  const uint32_t slots = std::clamp(cache_->frames_per_partition() / kAliasShare,
                                    2 * LooseAliases::kSlotsOfFaults, LooseAliases::kSlotsMax);
  const BlockPool& pool = frames_->pool();
  aliases_ = std::make_unique<LooseAliases>(
      LooseAliases::Options{space_.data(), options_.block_shift, slots, loose_uses_.get(), options_.fatal},
      *cache_, *alias_client_, *pages_, pool.file(), pool.base());
  return {};
}

// Where it is still to be chosen both are open, if the kernel serves
// faults of system calls at all: else there is nothing to choose.
Status MappedEngine::open_faults() {
  using platform::FaultDelivery, platform::FaultScope, platform::UserFault;
  if (options_.faults_by != FaultChoice::kSignals) {
    auto events = UserFault::open(options_.scope, FaultDelivery::kEvents);
    if (!events) return events.status();
    if (options_.faults_by == FaultChoice::kEvents || events->scope() == FaultScope::kAll)
      event_faults_ = std::move(*events);
  }
  auto faults = options_.faults_by == FaultChoice::kEvents
                    ? event_faults_.duplicate()
                    : UserFault::open(options_.scope, FaultDelivery::kSignal);
  if (!faults) return faults.status();
  faults_ = std::move(*faults);
  return {};
}

// Before memory is registered, for good. Whether what the kernel touches will be served from then on.
bool MappedEngine::choose_faults() {
  if (!options_.has_userfault && options_.rings_reach_less && platform::has_async_contexts_of_program())
    options_.rings_reach_less();
  const bool is_open = options_.faults_by == FaultChoice::kAuto && event_faults_.is_open();
  const bool kernel_is_served = !is_signalled() && faults_.scope() == platform::FaultScope::kAll;
  if (options_.stacks_are_managed && !is_watched_child_ && !kernel_is_served && !is_open)
    options_.fatal(Status::sentence(EPERM, options_.why_no_managed_stacks));
  if (!is_open) return false;
  if (!options_.stacks_are_managed && !platform::has_async_contexts_of_program()) return false;
  auto events = event_faults_.duplicate();
  if (!events) options_.fatal(events.status());
  faults_ = std::move(*events);
  return true;
}

std::string_view MappedEngine::faults_by() const {
  if (!options_.has_userfault) return "the thread that faults, by access rights: userfaultfd is not allowed";
  if (is_signalled())
    return options_.faults_by == FaultChoice::kAuto ? "the thread that faults"
                                                    : "the thread that faults (--faults=signals)";
  if (options_.faults_by != FaultChoice::kAuto) return "threads of the runtime (--faults=threads)";
  return options_.stacks_are_managed ? "threads of the runtime: stacks of Go lie in managed memory"
                                     : "threads of the runtime: the program has rings for asynchronous I/O";
}

Status MappedEngine::start_server() {
  fault_clients_ = std::vector<FaultClient>(options_.faults.pollers + options_.faults.fillers);
  for (FaultClient& fault_client : fault_clients_) {
    auto client = cache_->open_client(cache::Uses::kUnseen);
    if (!client) return client.status();
    fault_client.client = *client;
  }
  server_ = std::make_unique<FaultServer>(
      event_faults_, options_.faults, [this](const platform::FaultEvent& event) { serve(event); },
      [this]() -> std::unique_ptr<FaultReads> {
        return std::make_unique<BegunFaults>(*this, *cache_->open_fills());
      });
  return server_->start();
}

uint64_t MappedEngine::metadata_bytes() const {
  // One hint byte a piece, one fault-table entry a page: as much as the live range can make the kernel hold.
  constexpr uint64_t kBytesPerPage = 1 + 8;
  return regions_->live_bytes() / kMmuPageBytes * kBytesPerPage;
}

// ---- Watching ----

void MappedEngine::watch() {
  if (is_watching()) return;
  check_not_forked();
  uint32_t was = kNotWatched;
  if (watch_.cas_strong_acq_rel(was, kWatchWanted)) platform::futex_wake_all(watch_);
  while (!is_watching()) platform::futex_wait(watch_, kWatchWanted);
}

// In a thread of its own, since the caller's stack may be managed, and a signal handler of the program may run on it:
// either may fault meanwhile and is served when all is adopted.
void MappedEngine::watch_when_wanted(cache::Client& client) {
  while (watch_.load_acquire() == kNotWatched) platform::futex_wait(watch_, kNotWatched);
  if (watch_.load_acquire() == kWatchWanted) start_watching(&client);
}

void MappedEngine::start_watching(cache::Client* client) {
  std::unique_lock lock(watch_mutex_);
  std::byte* base = space_.data();
  const uint64_t used = used_bytes_.load_relaxed();
  const std::vector<KernelFiles::Range> files = kernel_files_.ranges();
  const bool kernel_will_reach = choose_faults();
  if (is_signalled() && options_.threads_serve_faults) options_.threads_serve_faults();
  if (!is_watched_child_) end_huge_pages(used);  // of a space that was watched there are none
  Status status = kernel_files_.end();           // who accesses them from here on waits in admit_fault()
  if (status) status = pages_->begin(used);
  for (const KernelFiles::Range& range : files)
    if (status) status = pages_->renew(reinterpret_cast<std::byte*>(range.begin), range.bytes());
  if (status && kernel_will_reach && options_.kernel_reaches) options_.kernel_reaches();
  if (status && used > 0)
    status = Adoption{base,    used,    options_.block_shift, resident_pages_, *pages_, *regions_,
                      *cache_, *client, is_watched_child_}
                 .run();
  if (!status) options_.fatal(status);
  telemetry::note_event(telemetry::TraceEvent::kWatched, telemetry::kTraceNoBlock);
  watch_.store_release(kWatched);  // pairs with the acquire before every use of the cache
  platform::futex_wake_all(watch_);
}

// A huge page would take memory for blocks that are not resident, and give it back only as a whole. Kernels without
// them refuse the advice. Those that a forked child shares with its parent stay, and are the parent's.
void MappedEngine::end_huge_pages(uint64_t used_bytes) {
  std::byte* const base = space_.data();
  (void)platform::advise(base, options_.space_bytes, platform::Advice::kNoHugePage);
  for (uint64_t at = 0; at < used_bytes; at += kHugePageBytes)
    (void)platform::advise(base + at, kMmuPageBytes, platform::Advice::kCold);
}

void MappedEngine::advise_huge_pages(uintptr_t address, size_t bytes, bool wanted) {
  check_not_forked();
  std::shared_lock lock(watch_mutex_);
  if (is_watching()) return;
  using platform::Advice;
  (void)platform::advise(reinterpret_cast<void*>(address), bytes,
                         wanted ? Advice::kHugePage : Advice::kNoHugePage);
}

// A core dump has what is in memory of anonymous memory, which is handed out from the start of the space.
void MappedEngine::let_dump(uint64_t end) {
  constexpr uint64_t kStep = 64 * kMiB;  // each is a system call
  end = std::min(round_up(end, kStep), options_.space_bytes);
  uint64_t begin = dumped_bytes_.load_relaxed();
  while (begin < end && !dumped_bytes_.cas_weak_acq_rel(begin, end)) {
  }
  if (begin < end) (void)platform::advise(space_.data() + begin, end - begin, platform::Advice::kDoDump);
}

void MappedEngine::grow(BlockId first, uint64_t count, uint64_t live_bytes, bool has_contents) {
  if (!has_contents && first.value < space_blocks()) let_dump((first.value + count) << options_.block_shift);
  if (!is_watching() && !grow_unwatched(first, count, live_bytes, has_contents)) watch();
}

bool MappedEngine::grow_unwatched(BlockId first, uint64_t count, uint64_t live_bytes, bool has_contents) {
  check_not_forked();
  std::shared_lock lock(watch_mutex_);
  if (is_watching()) return true;
  const bool fits = access::surely_fits(live_bytes, cache_->frame_limit(), options_.block_shift);
  if (!fits || pieces_.load_relaxed() >= kPiecesMax) return false;
  const uint64_t bytes = count << options_.block_shift;
  if (has_contents ? !leave_file_to_kernel(first, count)
                   : !platform::protect(frames_->address_of(first), bytes, platform::Protection::kReadWrite))
    return false;
  const uint64_t end = (first.value << options_.block_shift) + bytes;
  used_bytes_.store_relaxed(std::max(used_bytes_.load_relaxed(), end));  // under the region map's lock
  pieces_.fetch_add_relaxed(1);
  return true;
}

// One that is mapped to be written to. Where system calls are given managed memory as it is, at no moment could
// it become the cache's.
bool MappedEngine::leave_file_to_kernel(BlockId first, uint64_t count) {
  if (first.value >= space_blocks() || options_.faults_by == FaultChoice::kEvents) return false;
  const region::RegionMap::FilePlace place = regions_->file_place(first);
  if (place.kind != region::Kind::kSharedFile || place.offset_bytes % kMmuPageBytes != 0) return false;
  const platform::File* const file = place.store->file_to_map();
  return file != nullptr && kernel_files_.map(frames_->address_of(first), count << options_.block_shift,
                                              *file, place.offset_bytes);
}

// What the program was refused there while the range was not live is let in again.
void MappedEngine::grown(BlockId first, uint64_t count) {
  const auto begin = reinterpret_cast<uintptr_t>(frames_->address_of(first));
  if (first.value >= space_blocks()) return;  // pooled: nobody has its addresses
  pages_->forget_rights(begin, begin + (count << options_.block_shift));
  std::lock_guard lock(refused_mutex_);
  admit_pages(begin, begin + (count << options_.block_shift));
}

bool MappedEngine::withdraw(BlockId first, uint64_t count) {
  if (is_watching()) return withdraw_loose(first, count);
  check_not_forked();
  std::shared_lock lock(watch_mutex_);
  if (is_watching()) return withdraw_loose(first, count);
  std::byte* address = frames_->address_of(first);
  const uint64_t bytes = count << options_.block_shift;
  auto was_file = kernel_files_.unmap(address, bytes);
  if (!was_file) options_.fatal(was_file.status());
  if (!*was_file)
    if (Status s = platform::advise(address, bytes, platform::Advice::kDontNeed); !s) options_.fatal(s);
  if (is_live(first)) return true;
  // Where that fails (vm.max_map_count) it stays accessible, like memory on libc's free lists.
  if (!*was_file) (void)platform::protect(address, bytes, platform::Protection::kNone);
  pieces_.fetch_sub_relaxed(1);
  return true;
}

bool MappedEngine::sync_unwatched(BlockId first, uint64_t count, Status* status) {
  check_not_forked();
  std::shared_lock lock(watch_mutex_);
  if (is_watching()) return false;
  *status = kernel_files_.sync(frames_->address_of(first), count << options_.block_shift);
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
  auto* thread = new Thread;
  thread->client = &open_client(cache::Uses::kSeen);
  thread->holds_max = take_holds();
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
  if (MappedEngine* engine = g_engine.load_acquire(); engine && !g_lacks_engine.load_relaxed()) {
    thread->holds.end_all(*engine->cache_, *thread->client);
    engine->loose_holds_.fetch_sub_relaxed(thread->holds_max);
    engine->cache_->close_client(thread->client);
    if (thread->fault_client) engine->cache_->close_client(thread->fault_client);
  }
  delete thread;
}

cache::Client& MappedEngine::client() { return *this_thread().client; }

cache::Client& MappedEngine::fault_client() {
  Thread& thread = this_thread();
  if (!thread.fault_client) thread.fault_client = &open_client(cache::Uses::kUnseen);
  return *thread.fault_client;
}

// ---- Windows ----

access::Window MappedEngine::pin(uintptr_t address, size_t max_bytes, Access access) {
  InRuntime guard;
  check_not_forked();
  watch();
  const uint64_t block_bytes = uint64_t{1} << options_.block_shift;
  const size_t bytes = std::min<size_t>(max_bytes, block_bytes - address % block_bytes);
  if (access == Access::kOverwrite && bytes < block_bytes) access = Access::kWrite;
  cache::Pin pin;
  if (Status status = cache_->pin(*this_thread().client, block_of(address), access, &pin); !status)
    options_.fatal(status);
  if (is_managed(pin.data)) pages_->keep_open(pin.data);
  return {pin.data + address % block_bytes, bytes, pin.frame};
}

void MappedEngine::unpin(const access::Window& window) {
  InRuntime guard;
  if (is_managed(window.data)) pages_->let_close(window.data);
  cache_->unpin(*this_thread().client, window.frame);
}

// Elsewhere the kernel has its faults served.
bool MappedEngine::keep(uintptr_t address, access::Window* window, Access access) {
  if (!is_signalled() || !is_watching() || InRuntime::here()) return false;
  InRuntime guard;
  if (!may_access(address, access != Access::kRead)) return false;
  if (kept_.fetch_add_relaxed(1) < std::min(kKeptMax, cache_->frame_limit() / kKeptShare)) {
    cache::Pin pin;
    const BlockId block = block_of(address);
    cache::Client& client = *this_thread().client;
    if (cache_->pin(client, block, access, &pin)) {
      *window = {reinterpret_cast<std::byte*>(address), 1, pin.frame};
      if (cache_->place(pin.frame) || aliases_->admit(block, access != Access::kRead, true)) {
        pages_->keep_open(frames_->address_of(block));
        return true;
      }
      cache_->unpin(client, pin.frame);
    }
  }
  kept_.fetch_sub_relaxed(1);
  return false;
}

void MappedEngine::let_go(const access::Window& window) {
  aliases_->let_go(block_of(reinterpret_cast<uintptr_t>(window.data)));
  unpin(window);
  kept_.fetch_sub_relaxed(1);
}

access::Window MappedEngine::hold(uintptr_t address, size_t max_bytes, Access access) {
  Thread& thread = this_thread();
  if (thread.held_windows == access::kWindowsPerThread) return {};
  if (held_windows_.fetch_add_relaxed(1) >= kHeldWindowsMax) {
    held_windows_.fetch_sub_relaxed(1);
    return {};
  }
  ++thread.held_windows;
  return pin(address, max_bytes, access);
}

bool MappedEngine::release(const access::Window& window) {
  Thread& thread = this_thread();
  if (thread.held_windows == 0) return false;
  unpin(window);
  --thread.held_windows;
  held_windows_.fetch_sub_relaxed(1);
  return true;
}

}  // namespace spw::access
