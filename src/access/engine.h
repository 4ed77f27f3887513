// What the runtime needs of either engine: access to managed memory for those who do not go through it by themselves,
// the calling thread's door to the cache, and what regions ask of whoever caches their blocks: of the cache, but the
// engine may hold something of a range, too. access/translate and access/mapped implement it.
//
// Threads: any. Lifetime: one engine a process, until its end.
#pragma once

#include <cerrno>
#include <string_view>

#include "access/managed_access.h"
#include "base/status.h"
#include "region/cache_ranges.h"

namespace spw::access {

// What either engine ends a forked child with. No other error of theirs is ECHILD.
inline Status touched_in_child() {
  return Status::sentence(
      ECHILD, "a forked child touched managed memory, which only its parent has; call exec first");
}

// Whether so much live memory surely stays in so many frames of a cache: all but an eighth of them.
inline bool surely_fits(uint64_t live_bytes, uint32_t frames, unsigned block_shift) {
  return live_bytes <= (uint64_t{frames} << block_shift) / 8 * 7;
}

class Engine : public ManagedAccess, public region::CacheRanges {
 public:
  virtual const char* name() const = 0;
  // Who serves page faults, and why, for people; "" where nobody has to.
  virtual std::string_view faults_by() const { return {}; }
  // The calling thread's, opened at its first use.
  virtual cache::Client& client() = 0;
  // A window that stays until release(); data is nullptr when this
  // thread holds kWindowsPerThread, or all threads too many.
  virtual Window hold(uintptr_t address, size_t max_bytes, cache::Access access) = 0;
  // False: no such window is held.
  virtual bool release(const Window& window) = 0;
  void discard(BlockId first, uint64_t count) final;
  Status flush(BlockId first, uint64_t count) final;
  Status sync(BlockId first, uint64_t count) final;
  void prefetch(BlockId first, uint64_t count) final;
  void forget(store::Store& store) final;
  // While all managed memory fits an engine may leave it to the kernel, without the
  // cache. watch() ends that for good: before anybody uses the cache by himself, or
  // lowers its limit. Others have nothing to do as long as it is not watching.
  virtual void watch() {}
  virtual bool is_watching() const { return true; }
  // Whether managed memory that fits can be touched at its own addresses without translation, though data is elsewhere.
  virtual bool has_view() const { return false; }
  // SIGSEGV at `address`, which is managed: true if it can be touched
  // there now. Comes before admit_fault(), which serves others.
  virtual bool admit_to_view(uintptr_t /*address*/, bool /*is_store*/) { return false; }
  // SIGSEGV at `address`, which is managed. True: the access may be
  // tried again. `is_own`: the runtime's own code made it.
  virtual bool admit_fault(uintptr_t address, bool is_store, bool is_own) = 0;
  // An instruction was to be fetched from `address`, which is managed. False: the program gets the SIGSEGV.
  virtual bool may_execute(uintptr_t /*address*/) const { return true; }
  // SIGBUS at `address`, which is managed, of an engine that has faults delivered so. False: it is no fault of its own.
  virtual bool bring_in_fault(uintptr_t /*address*/, bool /*is_store*/, bool /*is_own*/) { return false; }
  // Forks: before_fork() while others go on, then lock_for_fork(), under the region map's locks, and after it in the
  // parent unlock_after_fork(), in the child forked(), by the only thread there is.
  virtual void before_fork() {}
  virtual void lock_for_fork() {}
  virtual void unlock_after_fork() {}
  // Whether children go on. Else they are refused at their first access.
  virtual bool survives_forks() const { return false; }
  enum class InChild : uint8_t {
    kRefused,  // every access reports and stops
    kAsNew,    // what it has is in memory; the first call that needs more asks for everything to be made anew
    kWatched,  // that may happen at any instruction
  };
  virtual InChild forked() = 0;
  // Adds to the counters what threads that have not ended have counted for themselves.
  virtual void settle_counters() {}
  // What it uses beside the frames: translation caches, staging, hints.
  virtual uint64_t metadata_bytes() const = 0;

 protected:
  explicit Engine(cache::SharedCache* cache = nullptr) : cache_(cache) {}
  // The range is about to be discarded from the cache: nothing of it that the engine keeps may be found afterwards.
  // True: the cache has none of it, and it is discarded already.
  virtual bool withdraw(BlockId first, uint64_t count) = 0;
  // sync() of what the engine has left to the kernel. False: it is watching meanwhile.
  virtual bool sync_unwatched(BlockId /*first*/, uint64_t /*count*/, Status* /*status*/) { return true; }
  // The range is about to be flushed: of what the engine itself keeps
  // pinned, which would stay dirty, it lets go what it can do without.
  virtual void before_flush(BlockId first, uint64_t count) = 0;

  cache::SharedCache* cache_;  // set before the regions know this engine
};

}  // namespace spw::access
