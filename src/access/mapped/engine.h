// The mapped engine: managed space is memory at its own addresses, registered with userfaultfd, or without access
// rights where that is forbidden (placed_pages.h). Whatever is not resident comes in by a fault, or, in code compiled
// with hints, by a call of __spw_hint_*.
//
// Loose blocks: what recompiled code misses is read into the pool (block_pool.h) and reached by a raw address, which
//   reach() returns; no page table changes. A pin of the thread's keeps it good (loose_holds.h). A block is placed at
//   its own address when it was used often, by a hint, or by a fault; SharedCache::place does so only while nobody
//   else holds it, so no raw address is in use then. Where somebody does, who faults gets an alias (loose_aliases.h)
//   and waits for nobody. There are none where threads of the runtime serve faults (FaultDelivery::kEvents), and none
//   in signal handlers of the program: what they interrupt may be using raw addresses.
// Watching: as long as all managed memory fits (access::surely_fits) and nothing of it comes from a store, the kernel
//   has it alone: the range is not registered, what is not live is inaccessible, and a program pays nothing; it is in
//   huge pages where the kernel gives them. Files that are mapped to be written to are the kernel's, too, at their
//   managed addresses (kernel_files.h). watch() ends that for good: it makes huge pages small ones, takes the files
//   away, of which the page cache keeps what was stored, registers the range, makes all of it accessible (what is
//   missing faults from then on) and takes what is there into the cache (adoption.h). Why nothing is missed: from the
//   registration on a page comes to be there only through the runtime; who would do so waits in serve() or returns from
//   hint() until all is adopted, and so does, in admit_fault(), who accesses a file that is gone from its address.
// Construction: create() takes the address range; make_frames() gives the cache its frame source; start() connects
//   cache and regions and starts the threads. Faults before start() wait for it.
// Threads: any. A thread's first call opens its client of the cache; its thread-specific destructor closes it. A fault
// is served by the pollers of FaultServer and, where it has to wait, by the fillers; or in a signal handler of the
// faulting thread (FaultDelivery), a hint in the
//   thread that asks. All pin the block for the moment (so that it
//       cannot go while its pages and hints are set) and unpin
//   it: nothing holds blocks in memory but windows. The handler has a
//       client of its own, since its thread may have been in the
//   runtime, which touches the program's memory at times (never with a lock of its own).
// Refused accesses: at addresses that belong to nobody, and stores to read-only files, the page loses its
//   access rights and the program gets the SIGSEGV that it would get from the kernel. When the address is
//   handed out later, grown() gives the rights back: the runtime's own reads of it, and the kernel's for
//   a writeback, must find them. refuse() looks again under the lock that grown() takes once the range is
//   live, so one of them sees the other. A range may be freed while others fault on it: until it is
//   discarded, the runtime's own accesses to what is there of it get the rights back in admit_fault().
// Lifetime: a process's; ends before its cache, when no transfer is in flight.
// Fork: forks.cc. What is placed the child has by the kernel's copy-on-write, and it faults on what is not, as its
//   parent does; what was loose and not on a store is copied to its address there. The engine is made anew when a fault
//   or a call needs one, over what the child has (make_anew()).
#pragma once

#include <pthread.h>

#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string_view>
#include <vector>

#include "access/engine.h"
#include "access/mapped/adoption.h"
#include "access/mapped/fault_server.h"
#include "access/mapped/hint_switch.h"
#include "access/mapped/hint_table.h"
#include "access/mapped/kernel_files.h"
#include "access/mapped/loose_aliases.h"
#include "access/mapped/loose_holds.h"
#include "access/mapped/mapped_frames.h"
#include "access/mapped/placed_pages.h"
#include "access/mapped/store_predictor.h"
#include "base/atomic.h"
#include "cache/extents/extent_memory.h"
#include "cache/page_cleaner.h"
#include "platform/memory.h"
#include "platform/userfault.h"
#include "region/region_map.h"

namespace spw::access {

// Who serves the faults of the program's threads. kAuto: they themselves, unless the program has made rings for
// asynchronous I/O by the time its memory is watched, on account of which the kernel touches memory when no thread of
// the program does: their faults only another thread can serve.
enum class FaultChoice : uint8_t { kAuto, kEvents, kSignals };

struct MappedOptions {
  unsigned block_shift = 12;
  uint64_t space_bytes =
      0;  // blocks behind it are pooled (block_pool.h): nobody accesses them by their addresses
  // Without, faults are of access rights (protected_pages.h), and served by the threads that have them.
  bool has_userfault = true;
  platform::FaultScope scope = platform::FaultScope::kAll;
  FaultChoice faults_by = FaultChoice::kAuto;
  uint32_t staging_runs_max = 16;
  bool watches_at_once = false;
  // No signal can be sent to the program's threads where their memory is not there: kAuto is kEvents.
  bool stacks_are_managed = false;
  FaultServer::Options faults;
  cache::PageCleaner::Options room;
  void (*fatal)(const Status&) = nullptr;
  bool children_go_on = true;  // after a fork; else they have no managed memory
  // In a forked child, which needs more than it has: returns when the engine has been made anew.
  void (*await_engine)() = nullptr;
  // Called at most once: system calls may be given managed memory from now on, since their faults are served.
  void (*kernel_reaches)() = nullptr;
  // Called at most once: memory is about to be watched, and its faults are served by the threads that have them.
  void (*threads_serve_faults)() = nullptr;
  // Called at most once: from now on asynchronous I/O of the program's fails where its memory is not there, since
  // nobody can serve faults of the kernel's.
  void (*rings_reach_less)() = nullptr;
  // What is told where the program's stacks are managed and no thread can serve their faults.
  std::string why_no_managed_stacks;
  // By a thread that serves a fault of its own, in a signal handler, in the runtime. Async-signal-safe.
  void (*serves_a_fault)() = nullptr;
};

class MappedEngine;
// The entry points are C functions without a context: they find the engine here. Written once at start.
extern Atomic<MappedEngine*> g_engine;
// This is a forked child whose engine is not made anew yet, or never will be.
extern Atomic<bool> g_lacks_engine;
// 0 in a forked child that has not begun as one (MappedEngine::forked).
extern Atomic<uint8_t>* g_process_mark;
extern thread_local void* t_thread;

class MappedEngine final : public access::Engine {
 public:
  // EPERM and ENOSYS where userfaultfd is not allowed and `has_userfault`. Takes [SPW_MANAGED_BASE, +
  // SPW_MANAGED_BYTES).
  static Result<std::unique_ptr<MappedEngine>> create(const MappedOptions& options);
  ~MappedEngine() override;

  Result<std::unique_ptr<cache::FrameSource>> make_frames(uint32_t frame_count);
  // Of so many frames at most. ENOTSUP where there can be no extents.
  Result<std::unique_ptr<cache::ExtentMemory>> make_extents(uint32_t frame_count, uint32_t share);
  Status start(cache::SharedCache& cache, region::RegionMap& regions);
  // In a forked child, with `forked` as forked() left it: an engine in its place, for make_frames() and start(). What
  // belonged to threads that the child does not have is left as it is.
  static Status make_anew(MappedEngine& forked, const MappedOptions& options);
  // That one has started: others go on with it.
  static void is_made_anew();
  // Ends the engine's threads: nothing is read ahead or written on their account any more, and no fault is served.
  // Again: nothing more. The destructor does it otherwise.
  void stop();

  // Brings the block at `address` in, if it is managed.
  void hint(uintptr_t address, bool is_store);
  void hint_range(uintptr_t address, uint64_t bytes, bool is_store);
  // Where recompiled code is to access [address, address + bytes): at a raw address, or at its own (abi/hints.h).
  uintptr_t reach(uintptr_t address, uint32_t bytes, uint32_t site, bool is_store);
  void hint_stream(uintptr_t address, uint64_t bytes);

  // How faults are served, and why so: for people. May change when memory is first watched.
  std::string_view faults_by() const override;

  access::Window pin(uintptr_t address, size_t max_bytes, cache::Access access) override;
  void unpin(const access::Window& window) override;
  bool keep(uintptr_t address, access::Window* window, cache::Access access) override;
  void let_go(const access::Window& window) override;
  // From the first call on no block comes loose: a raw address has no access rights.
  std::optional<int> program_protects(uintptr_t address, size_t bytes, int protection) override;
  // As after program_protects().
  void keep_in_place(uintptr_t address, size_t bytes) override;
  void keep_open(uintptr_t address, size_t bytes) override;
  int program_rights(uintptr_t begin, uintptr_t* end) const override {
    return pages_->program_rights(begin, end);
  }
  int handler_begins(const HandlerStack& stack) override;
  void handler_ends(int level) override;

  const char* name() const override { return "mapped"; }
  cache::Client& client() override;
  access::Window hold(uintptr_t address, size_t max_bytes, cache::Access access) override;
  bool release(const access::Window& window) override;
  void watch() override;
  bool is_watching() const override { return watch_.load_acquire() == kWatched; }
  void advise_huge_pages(uintptr_t address, size_t bytes, bool wanted) override;
  void grow(BlockId first, uint64_t count, uint64_t live_bytes, bool has_contents) override;
  void grown(BlockId first, uint64_t count) override;
  bool admit_fault(uintptr_t address, bool is_store, bool is_own) override;
  bool may_execute(uintptr_t address) const override {
    check_not_forked();
    return pages_->may_execute(address);
  }
  bool bring_in_fault(uintptr_t address, bool is_store, bool is_own) override;
  bool survives_forks() const override { return options_.children_go_on; }
  void before_fork() override;
  void lock_for_fork() override;
  void unlock_after_fork() override;
  InChild forked() override;
  uint64_t metadata_bytes() const override;

 protected:
  bool withdraw(BlockId first, uint64_t count) override;
  bool sync_unwatched(BlockId first, uint64_t count, Status* status) override;
  void before_flush(BlockId first, uint64_t count) override;

 private:
  struct Thread {
    cache::Client* client = nullptr;
    cache::Client* fault_client = nullptr;  // opened by the first signal
    LooseHolds holds;
    uint32_t holds_max = 0;
    // Signal handlers of the program that run, one within the other, and the outermost one's stack. What they
    // interrupt may be using raw addresses, so they get none.
    int handlers = 0;
    HandlerStack handler;
    unsigned held_windows = 0;
  };
  struct FaultClient {
    cache::Client* client = nullptr;
    Atomic<bool> busy{false};
  };
  // What a fault asks of the cache.
  struct Wanted {
    platform::FaultEvent event;
    BlockId block;
    cache::Access access = cache::Access::kRead;
    bool expects_store = false;
    bool was_loaded = false;
    bool is_begun = false;  // its block is being read
  };
  // Whether who serves a fault may wait for others, who may wait for that fault or another (BegunFaults).
  enum class Waits : uint8_t { kMay, kNever };
  class BegunFaults;
  // What a child is given beside what it inherits.
  struct ForChild {
    std::vector<BlockId> copied;   // blocks that were loose and not on a store
    platform::Mapping copies;      // of them, in this order
    std::vector<BlockId> aliased;  // nothing is mapped there
  };
  explicit MappedEngine(const MappedOptions& options) : options_(options), stores_(options.block_shift) {}

  // What watch_ says; threads sleep on it.
  static constexpr uint32_t kNotWatched = 0, kWatchWanted = 1, kWatched = 2, kNeverWatched = 3;
  static constexpr uint64_t kStoresAheadBytesMax = 2 * kMiB;
  // Ranges in use while the space is not watched: each is an area of the kernel's, and so is what lies between two; a
  // process has 65530 of them (vm.max_map_count).
  static constexpr int64_t kPiecesMax = 16384;
  // A loose block that was used so often is placed: a use costs so much more than one of a placed block that as many
  // are worth the change of page tables.
  static constexpr uint8_t kLooseUsesMax = 16;
  // All threads may hold so large a part of a partition's frames.
  static constexpr uint32_t kHoldsShare = 4;

  BlockId block_of(uintptr_t address) const;
  // Which the range has a byte in.
  uint64_t blocks_of(uintptr_t address, size_t bytes) const {
    return block_of(address + bytes - 1).value - block_of(address).value + 1;
  }
  uint64_t space_blocks() const { return options_.space_bytes >> options_.block_shift; }
  // Threads serve their own faults: there is no server, and nobody is asleep who has to be woken.
  bool is_signalled() const {
    return !options_.has_userfault || faults_.delivery() == platform::FaultDelivery::kSignal;
  }
  Status open_faults();
  Status start_server();
  Status open_aliases();
  void look();
  void look_at_layers(uint64_t now_ns);
  bool see_to_layers();
  bool move_blocks();
  bool choose_faults();
  void watch_when_wanted(cache::Client& client);
  void start_watching(cache::Client* client);
  void end_huge_pages(uint64_t used_bytes);
  void let_dump(uint64_t end);
  bool grow_unwatched(BlockId first, uint64_t count, uint64_t live_bytes, bool has_contents);
  bool leave_file_to_kernel(BlockId first, uint64_t count);
  Thread& this_thread();
  Thread& register_thread();
  static void thread_ended(void* thread);
  void serve(const platform::FaultEvent& event);
  bool refuse_wrong(const platform::FaultEvent& event);
  Wanted wanted_by(const platform::FaultEvent& event);
  bool serve_rights_fault(uintptr_t address, bool is_store, bool is_own);
  void bring_in(cache::Client& client, const platform::FaultEvent& event);
  void end_fault(cache::Client& client, const platform::FaultEvent& event, const Wanted& wanted,
                 const cache::Pin& pin, Waits waits);
  cache::Client& open_client(cache::Uses uses);
  cache::Client& fault_client();
  FaultClient& take_fault_client(uint32_t thread);
  void refuse_freed(const platform::FaultEvent& event);
  void refuse(uintptr_t page, platform::Protection left);
  bool admit_pages(uintptr_t begin, uintptr_t end);
  bool is_live(BlockId block) const;
  bool may_store(uintptr_t address) const;
  bool may_access(uintptr_t address, bool is_store) const;
  bool may_come_loose() const { return is_signalled() && !loose_ended_.load_relaxed(); }
  bool is_loose(BlockId block, const cache::Pin& pin) const { return pin.data != frames_->address_of(block); }
  uintptr_t reach_block(Thread& thread, BlockId block, uint32_t site, bool is_store);
  bool last_ends_in_place(Thread& thread, bool is_store);
  bool goes_in_place(const Thread& thread, const LooseHold& held, bool is_store);
  bool put_in_place(BlockId block, const cache::Pin& pin, bool is_store);
  void end_holds();
  bool withdraw_loose(BlockId first, uint64_t count);
  void place_all(BlockId first, uint64_t count);
  uint32_t take_holds();
  bool is_in_handler(Thread& thread) const;
  void note_hinted(BlockId block, bool is_store, cache::Access access, bool was_loaded,
                   const cache::Pin& pin);
  void after_hint(cache::Client& client, BlockId block, const cache::Pin& pin);
  uint64_t stored_run(BlockId block, int64_t step, uint64_t most) const;
  cache::Access access_of(BlockId block, bool is_store);
  bool expects_store(BlockId block, cache::Access access);
  Status pin_expecting(cache::Client& client, BlockId block, cache::Access access, bool expects_store,
                       cache::Pin* pin);
  void learn_access(BlockId block, bool is_store, cache::Access access, bool was_loaded,
                    const cache::Pin& pin);
  void allow_stores_ahead(BlockId block);
  void after_miss(cache::Client& client, BlockId block, Waits waits);
  // Waits, in a child, until there is an engine to go on with.
  void check_not_forked() const {
    if (g_lacks_engine.load_acquire() || is_unknown_child()) [[unlikely]]
      await_engine();
  }
  void await_engine() const;
  static Status mark_process();
  // A forked child of which nobody has told: it has no managed memory.
  static bool is_unknown_child() { return g_process_mark->load_relaxed() == 0; }
  void let_children_have(bool let) const;
  bool copy_unwritten(ForChild* given) const;
  void lock_own_for_fork();
  void unlock_own_after_fork();
  Status drop_shared() const;
  Status give_to_child(const ForChild& given) const;
  Status watch_in_child();
  bool serve_without_engine(uintptr_t address, bool is_own);
  Status put_there(BlockId block, const std::byte* from) const;

  const MappedOptions options_;
  platform::UserFault faults_;        // what managed space is registered with
  platform::UserFault event_faults_;  // what the server polls; open: they may still be chosen, or have been
  platform::Mapping space_;
  std::unique_ptr<PlacedPages> pages_;
  HintTable hints_;
  HintSwitch hint_switch_;
  StorePredictor stores_;
  MappedFrames* frames_ = nullptr;
  std::unique_ptr<Atomic<uint8_t>[]> loose_uses_;  // of each frame, since it was filled
  Atomic<uint32_t> loose_holds_{0};                // that threads may have
  Atomic<bool> loose_ended_{false};
  std::unique_ptr<LooseAliases> aliases_;
  cache::Client* alias_client_ = nullptr;
  region::RegionMap* regions_ = nullptr;
  // One for each thread of the server. A thread's faults are served with
  // the same one where that is idle, so that its streams are found.
  std::vector<FaultClient> fault_clients_;
  std::unique_ptr<FaultServer> server_;
  std::unique_ptr<cache::PageCleaner> room_;
  pthread_key_t key_{};
  Atomic<uint32_t> held_windows_{0};
  Atomic<uint32_t> kept_{0};
  Atomic<uint32_t> watch_{kNotWatched};
  platform::Thread watcher_;
  // Shared: by who gives memory to, or takes it from, a space that is not
  // watched. Alone: by start_watching(). Taken after the region map's.
  std::shared_mutex watch_mutex_;
  Atomic<int64_t> pieces_{0};
  platform::ResidentPages resident_pages_;  // where it cannot be read the space is watched from the start
  Atomic<uint64_t> used_bytes_{0};          // from the start of the space; nothing behind was ever live
  Atomic<uint64_t> dumped_bytes_{0};        // from the start: part of core dumps, if they are there
  KernelFiles kernel_files_;
  std::mutex refused_mutex_;
  std::vector<uintptr_t> refused_pages_;
  uint64_t next_look_at_layers_ns_ = 0;  // the page cleaner's
  // How many faults a forked child may serve before it needs an engine.
  static constexpr uint32_t kServedWithoutEngineMax = 128;
  bool is_watched_child_ = false;  // a forked child's, whose memory has faulted since its first instruction
  std::optional<ForChild> for_child_;  // during a fork
  bool has_begun_fork_ = false;        // that the cache has been told of
};

}  // namespace spw::access
