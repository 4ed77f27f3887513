// Forks: what a child has of its parent's memory.
//
// Of a block that is placed it has the pages, by the kernel's copy-on-write. A block that is absent there is absent
// in the child, which reads it from where it is on a store (region/spill_layers.h), or finds zeros. For that to be
// the same contents, nothing may leave its place between the moment at which the kernel copies what is known of a
// block and the moment at which it copies the block's page: so nothing does from lock_for_fork() on
// (MappedFrames::lock_for_fork). A block that is loose is in the pool, which a child does not have. Where the store
// has not got it, it is placed before the fork; or, where somebody holds it, copied, and put at its address in the
// child (for_child_).
// What another thread stores to a loose block while it forks the child may or may not see, whatever else it sees of
// that thread.
//
// Managed space is a child's only where its parent knew of the fork (let_children_have): one that was made in another
// way (a child of clone() by an instruction, on a stack of its own) would read zeros for what is on the store, so it
// gets SIGSEGV.
//
// A child begins with nothing but its memory, which faults in the thread that accesses it. A few blocks that thread
// can read and put in their place by itself (serve_without_engine()); so can code of the runtime that makes all the
// rest. It asks for that when it first needs it (MappedOptions::await_engine), if it ever does: most children execute
// something.
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "access/mapped/engine.h"
#include "base/check.h"
#include "base/in_runtime.h"
#include "base/need.h"

namespace spw::access {

constinit Atomic<bool> g_lacks_engine{false};
namespace {
constinit Atomic<uint8_t> g_unmarked{1};
}
constinit Atomic<uint8_t>* g_process_mark = &g_unmarked;

namespace {
constinit thread_local bool t_makes_engine = false;

// Of a forked child without an engine: it outlives the one that it came with.
struct Child {
  std::mutex mutex;
  bool makes_engine = false;  // some thread does
  bool is_refused = false;    // there will be none
  uint32_t served = 0;        // faults
  platform::Mapping buffer;   // a block
};
// Never destroyed: destructors of the program's own statics fault, and may fork.
Child& child() {
  union Kept {
    constexpr Kept() : child() {}
    ~Kept() {}
    Child child;
  };
  static constinit Kept kept;
  return kept.child;
}
}  // namespace

void MappedEngine::before_fork() {
  if (g_lacks_engine.load_relaxed() || !is_watching() || !options_.children_go_on) return;
  InRuntime guard;
  cache_->begin_fork(*this_thread().client);
  has_begun_fork_ = true;
  while (regions_->spilled().count() > region::SpillLayers::kLayersHigh && move_blocks())
    (void)see_to_layers();
  if (!is_signalled()) return;  // nothing is loose
  end_holds();
  aliases_->withdraw(BlockId(0), space_blocks(), LooseAliases::Kept::kStay);
  cache::Client& client = *this_thread().client;
  const cache::FrameSource::Placement placement = frames_->placement();
  cache_->for_each_unwritten([&](cache::Resident resident) {
    if (!placement.has_address(resident.block) || placement.is_placed(resident)) return;
    cache::Pin pin;
    if (!cache_->pin_present(client, resident.block, cache::Access::kRead, &pin)) return;
    (void)cache_->place(pin.frame);
    cache_->unpin(client, pin.frame);
  });
}

// Once a process, in a page of its own that a child finds wiped.
Status MappedEngine::mark_process() {
  if (g_process_mark != &g_unmarked) return {};
  auto made = platform::map_anonymous(kMmuPageBytes);
  if (!made) return made.status();
  if (Status s = platform::advise(made->data(), kMmuPageBytes, platform::Advice::kWipeOnFork); !s) return s;
  g_process_mark = new (made->release()) Atomic<uint8_t>(1);
  return {};
}

// But for aliases, which are the pool's memory.
void MappedEngine::let_children_have(bool let) const {
  const auto advice = let ? platform::Advice::kDoFork : platform::Advice::kDontFork;
  std::vector<uint64_t> without;
  if (for_child_)
    for (const BlockId block : for_child_->aliased) without.push_back(block.value << options_.block_shift);
  std::ranges::sort(without);
  without.push_back(options_.space_bytes);
  uint64_t begin = 0;
  for (const uint64_t end : without) {
    if (begin < end) need(platform::advise(space_.data() + begin, end - begin, advice));
    begin = end + (uint64_t{1} << options_.block_shift);
  }
}

void MappedEngine::lock_for_fork() {
  watch_mutex_.lock_shared();
  if (g_lacks_engine.load_relaxed())
    child().mutex.lock();  // no block is there in part
  else
    lock_own_for_fork();
  if (options_.children_go_on) let_children_have(true);
}

void MappedEngine::lock_own_for_fork() {
  if (aliases_) aliases_->lock_for_fork();
  refused_mutex_.lock();
  pages_->lock_for_fork();
  frames_->lock_for_fork();
  pages_->lock_rights_for_fork();
  if (!is_watching()) return;
  InRuntime guard;
  for_child_.emplace();
  if (aliases_) aliases_->for_each([this](BlockId block) { for_child_->aliased.push_back(block); });
  if (!copy_unwritten(&*for_child_)) options_.fatal(Status(ENOMEM, "cannot copy memory for a forked child"));
}

// What is still loose. A frame that is another block's meanwhile is one whose range was freed.
bool MappedEngine::copy_unwritten(ForChild* given) const {
  std::vector<cache::Resident> found;
  const cache::FrameSource::Placement placement = frames_->placement();
  const auto is_copied = [&](cache::Resident resident) {
    return placement.has_address(resident.block) && !placement.is_placed(resident);
  };
  cache_->for_each_unwritten([&](cache::Resident resident) {
    if (is_copied(resident)) found.push_back(resident);
  });
  if (found.empty()) return true;
  auto copies = platform::map_anonymous(found.size() << options_.block_shift);
  if (!copies) return false;
  given->copies = std::move(*copies);
  std::byte* to = given->copies.data();
  for (const cache::Resident& resident : found) {
    if (!is_copied(resident)) continue;
    std::memcpy(to, placement.data(resident, options_.block_shift), uint64_t{1} << options_.block_shift);
    if (!cache_->holds(resident)) continue;
    given->copied.push_back(resident.block);
    to += uint64_t{1} << options_.block_shift;
  }
  return true;
}

void MappedEngine::unlock_after_fork() {
  if (options_.children_go_on) let_children_have(false);
  if (std::exchange(has_begun_fork_, false)) cache_->end_fork();
  unlock_own_after_fork();
}

void MappedEngine::unlock_own_after_fork() {
  if (!g_lacks_engine.load_relaxed()) {
    for_child_.reset();
    pages_->unlock_rights_after_fork();
    frames_->unlock_after_fork();
    pages_->unlock_after_fork();
    refused_mutex_.unlock();
    if (aliases_) aliases_->unlock_after_fork();
  } else {
    child().mutex.unlock();
  }
  watch_mutex_.unlock_shared();
}

access::Engine::InChild MappedEngine::forked() {
  InRuntime guard;
  const bool was_child = g_lacks_engine.load_relaxed();
  const bool was_watching = was_child ? is_watched_child_ : is_watching();
  if (options_.children_go_on) let_children_have(false);
  const ForChild given = for_child_ ? std::move(*for_child_) : ForChild();
  unlock_own_after_fork();
  new (&watch_mutex_) std::shared_mutex;  // others waited for it
  g_lacks_engine.store_relaxed(true);
  g_process_mark->store_relaxed(1);
  new (&child()) Child;
  t_thread = nullptr;
  if (!was_child) pthread_key_delete(key_);
  // These are of the parent's address space: nothing that the child does may reach it.
  faults_ = platform::UserFault();
  event_faults_ = platform::UserFault();
  child().is_refused = !options_.children_go_on;
  if (child().is_refused) return InChild::kRefused;
  watch_.store_relaxed(kNotWatched);
  is_watched_child_ = was_watching;
  if (!was_watching) return InChild::kAsNew;
  if (give_to_child(given) && drop_shared() && watch_in_child()) return InChild::kWatched;
  // Without faults what is on the store would read as zeros.
  need(platform::protect(space_.data(), options_.space_bytes, platform::Protection::kNone));
  child().is_refused = true;
  return InChild::kRefused;
}

// Before its memory faults. Nothing is mapped where an alias was; a block that was copied may have been placed after
// all.
Status MappedEngine::give_to_child(const ForChild& given) const {
  const uint64_t bytes = uint64_t{1} << options_.block_shift;
  for (const BlockId block : given.aliased)
    for (Status s : {platform::release_at(frames_->address_of(block), bytes),
                     platform::advise(frames_->address_of(block), bytes, platform::Advice::kDontFork)})
      if (!s) return s;
  const std::byte* from = given.copies.data();
  for (const BlockId block : given.copied) {
    std::byte* const address = frames_->address_of(block);
    if (!platform::is_page_present(reinterpret_cast<uintptr_t>(address))) {
      if (Status s = platform::protect(address, bytes, platform::Protection::kReadWrite); !s) return s;
      std::memcpy(address, from, bytes);
    }
    from += bytes;
  }
  for (const std::vector<BlockId>& blocks : {given.aliased, given.copied})
    for (const BlockId block : blocks) {
      std::byte* const address = frames_->address_of(block);
      if (options_.has_userfault)
        if (Status s = platform::protect(address, bytes, platform::Protection::kReadWrite); !s) return s;
      if (Status s = pages_->limit_alias(address, bytes, ~0); !s) return s;
    }
  return {};
}

// Of files that only their stores may change nothing is there, so that each access to them asks for the engine.
Status MappedEngine::drop_shared() const {
  if (!regions_->has_files()) return {};
  Status status;
  regions_->for_each_live_run(BlockId(0), space_blocks(), [&](BlockId first, uint64_t count) {
    const uint64_t end = (first.value + count) << options_.block_shift;
    for (uint64_t at = first.value << options_.block_shift, next; at < end && status; at = next) {
      next = std::min(end, round_up(at + 1, region::kChunkBytes));
      if (!regions_->may_write_unstored(BlockId(at >> options_.block_shift)))
        status = platform::advise(space_.data() + at, next - at, platform::Advice::kDontNeed);
    }
  });
  return status;
}

// Without userfaultfd what is absent has no access rights, here as in the parent.
Status MappedEngine::watch_in_child() {
  if (!options_.has_userfault) return {};
  auto faults = platform::UserFault::open(options_.scope, platform::FaultDelivery::kSignal);
  if (!faults) return faults.status();
  faults_ = std::move(*faults);
  return faults_.register_range(space_.data(), options_.space_bytes);
}

// Not of a file that only its store may change, nor what is to be refused. It is what the adoption finds, later.
// While the engine is being made, what it consists of is its maker's alone.
bool MappedEngine::serve_without_engine(uintptr_t address, bool is_own) {
  InRuntime guard;
  Child& child = access::child();
  std::lock_guard lock(child.mutex);
  if (child.makes_engine && (!t_makes_engine || is_watching())) return false;
  const BlockId block = block_of(address);
  if (child.is_refused || !is_watched_child_ || !is_live(block) || !regions_->may_write_unstored(block))
    return false;
  if (!is_own && ++child.served > kServedWithoutEngineMax) return false;
  const uint64_t bytes = uint64_t{1} << options_.block_shift;
  if (child.buffer.bytes() == 0) {
    auto buffer = platform::map_anonymous(bytes, bytes);
    if (!buffer) return false;
    child.buffer = std::move(*buffer);
  }
  const cache::Backing backing = regions_->locate_for_fill(block);
  if (backing.has_contents) {
    store::Request read;
    read.offset_bytes = backing.offset_bytes;
    read.segment_count = 1;
    read.segments[0] = {child.buffer.data(), bytes};
    if (!backing.store->transfer(read)) return false;
  } else {
    std::memset(child.buffer.data(), 0, bytes);
  }
  // Half of a block would be taken for a whole one.
  if (Status status = put_there(block, child.buffer.data()); status.error() == EEXIST)
    return false;
  else if (!status)
    options_.fatal(status);
  return true;
}

// What is absent of the block. Without userfaultfd: its faults may also be about what is there, without the right
// that was wanted (EEXIST).
Status MappedEngine::put_there(BlockId block, const std::byte* from) const {
  std::byte* const to = space_.data() + (block.value << options_.block_shift);
  if (!options_.has_userfault && platform::is_page_present(reinterpret_cast<uintptr_t>(to)))
    return Status(EEXIST, "the block is there");
  for (uint64_t at = 0; at < uint64_t{1} << options_.block_shift; at += kMmuPageBytes) {
    if (options_.has_userfault) {
      const Status status = faults_.copy(to + at, from + at, kMmuPageBytes, false);
      if (!status && status.error() != EEXIST) return status;
    } else if (!platform::is_page_present(reinterpret_cast<uintptr_t>(to + at))) {
      if (Status s = platform::protect(to + at, kMmuPageBytes, platform::Protection::kReadWrite); !s)
        return s;
      std::memcpy(to + at, from + at, kMmuPageBytes);
      if (Status s = pages_->limit_alias(to + at, kMmuPageBytes, ~0); !s) return s;
    }
  }
  return {};
}

void MappedEngine::look_at_layers(uint64_t now_ns) {
  constexpr uint64_t kSeldomNs = 500'000'000;
  next_look_at_layers_ns_ = see_to_layers() && move_blocks() ? 0 : now_ns + kSeldomNs;
}

// Whether there are too many.
bool MappedEngine::see_to_layers() {
  if (!is_watching() || !regions_->spilled().expect_quiet()) return false;
  cache_->await_writes(*this_thread().client, BlockId(0), space_blocks());
  return regions_->look_at_layers();
}

// Some, from a layer that should go to the top one: what is dirty is written there. False: there are none, or none that
// can be moved, since they cannot be read or are in an extent.
bool MappedEngine::move_blocks() {
  constexpr uint64_t kMovedAtOnce = 64;
  const std::vector<cache::BlockRun> runs = regions_->spilled().to_be_moved(kMovedAtOnce);
  cache::Client& client = *this_thread().client;
  uint64_t dirtied = 0;
  for (const cache::BlockRun& run : runs)
    for (uint64_t i = 0; i < run.count; ++i) {
      cache::Pin pin;
      if (!cache_->pin_quietly(client, run.first + i, cache::Access::kWrite, &pin)) continue;
      dirtied += !pin.is_extent;
      cache_->unpin(client, pin.frame);
    }
  size_t next = 0;
  cache::Flushing flushing;
  cache_->begin_flush(
      client, [&] { return next < runs.size() ? runs[next++] : cache::BlockRun(); }, &flushing);
  return cache_->end_flush(client, &flushing).is_ok() && dirtied > 0;
}

void MappedEngine::await_engine() const {
  if (t_makes_engine) return;
  if (is_unknown_child() || child().is_refused || !options_.await_engine)
    options_.fatal(access::touched_in_child());
  options_.await_engine();
}

// The engine that was there goes without a destructor: threads that it would wait for are its parent's.
Status MappedEngine::make_anew(MappedEngine& forked, const MappedOptions& options) {
  SPW_CHECK(g_lacks_engine.load_relaxed() &&
            (!options.has_userfault || options.faults_by == FaultChoice::kSignals));
  {
    // Who is serving a fault has served it.
    std::lock_guard lock(child().mutex);
    child().makes_engine = t_makes_engine = true;
  }
  platform::UserFault faults = std::move(forked.faults_);
  platform::Mapping space = std::move(forked.space_);
  HintTable hints = std::move(forked.hints_);
  KernelFiles kernel_files = std::move(forked.kernel_files_);
  std::unique_ptr<PlacedPages> pages = std::move(forked.pages_);
  std::vector<uintptr_t> refused_pages = std::move(forked.refused_pages_);
  const bool is_watched = forked.is_watched_child_, is_loose_ended = forked.loose_ended_.load_relaxed();
  const uint64_t used_bytes = forked.used_bytes_.load_relaxed();
  const int64_t pieces = forked.pieces_.load_relaxed();
  region::RegionMap* const regions = forked.regions_;
  g_engine.store_relaxed(nullptr);
  auto* const engine = new (&forked) MappedEngine(options);
  engine->faults_ = std::move(faults);
  if (options.has_userfault && !engine->faults_.is_open())
    if (Status status = engine->open_faults(); !status) return status;
  engine->space_ = std::move(space);
  engine->regions_ = regions;
  engine->hints_ = std::move(hints);
  engine->kernel_files_ = std::move(kernel_files);
  auto inherited = pages->inherit(engine->faults_);
  if (!inherited) return inherited.status();
  engine->pages_ = std::move(*inherited);
  engine->refused_pages_ = std::move(refused_pages);
  engine->is_watched_child_ = is_watched;
  engine->loose_ended_.store_relaxed(is_loose_ended);
  engine->used_bytes_.store_relaxed(is_watched ? options.space_bytes : used_bytes);
  engine->pieces_.store_relaxed(pieces);
  return {};
}

void MappedEngine::is_made_anew() {
  t_makes_engine = false;
  child().buffer = platform::Mapping();
  g_lacks_engine.store_release(false);  // pairs with check_not_forked(): who goes on sees a whole engine
}

}  // namespace spw::access
