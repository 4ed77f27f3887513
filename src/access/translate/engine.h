// The translated engine: gives every thread a Translator at its first managed access and takes it back at its end.
//
// Signal handlers of the program. The code that a handler interrupts may be about to use a raw address, which is good
// until that code translates again: so nothing that is translated meanwhile may take a block from the thread's SATC. A
// handler therefore has a translator of its own, with a ring of pins and no SATC: every access of it comes here, as
// instrumented code sees no direct table while the handler runs. Handlers that interrupt each other have one each, up
// to kHandlersDeepMax, and further ones wait until one of them ends (access/managed_access.h); they are made at a
// handler's first managed access and kept until the thread ends. A handler that is left by a jump (siglongjmp) is
// noticed by the stack pointer of who enters next, at the latest when code above its frame misses, which it does since
// it sees no direct table. Code that goes on on another stack (swapcontext) counts as having left it; the rest of such
// a handler uses the thread's translator, and what it interrupted is as safe as SPW_STABLE_TRANSLATIONS make it.
//
// Threads: any. A thread's first managed access, from inlined code or through ManagedAccess, registers it;
// its thread-specific destructor flushes the SATC and returns its share of the pin budget. A managed access
// after that (from another thread-specific destructor) registers the thread again. Fork: in a child nothing
// is translated any more; forked() makes every access there report and stop. Lifetime: one per process at a
// time (the entry points need one); it outlives every thread that uses it, or is leaked at exit.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "access/engine.h"
#include "access/translate/alias_table.h"
#include "access/translate/resident_view.h"
#include "access/translate/translator.h"
#include "base/atomic.h"

namespace spw::access {

inline constexpr int kHandlersDeepMax = 4;

struct EngineOptions {
  unsigned block_shift = 12;
  uint32_t expected_threads = 1;
  const platform::File* frames = nullptr;  // the frame pool's memory file; none: foreign code is not served
  SatcLevels satc = SatcLevels::kAll;
  // Where blocks come from; nullptr: code runs its instrumented version from the start, without a resident view.
  cache::BlockSource* blocks = nullptr;
  void (*view_ends)() = nullptr;  // called before it does; nullptr: nobody need know
};

class TranslatedEngine final : public access::Engine {
 public:
  TranslatedEngine(cache::SharedCache& cache, const EngineOptions& options, void (*fatal)(const Status&));
  ~TranslatedEngine() override;

  access::Window pin(uintptr_t address, size_t max_bytes, cache::Access access) override;
  void unpin(const access::Window& window) override;
  bool copy_few(void* to, const void* from, size_t bytes) override;
  int handler_begins(const access::HandlerStack& stack) override;
  void handler_ends(int level) override;

  const char* name() const override { return "translated"; }
  cache::Client& client() override { return translator().client(); }
  // All threads together hold kHeldWindowsMax.
  access::Window hold(uintptr_t address, size_t max_bytes, cache::Access access) override;
  bool release(const access::Window& window) override;
  // A fault in code that was not recompiled: makes the block accessible there. False: not served.
  bool admit_fault(uintptr_t address, bool is_store, bool is_own) override;
  // What is managed has no such right here (mprotect() refuses it); a fetch that was admitted would fault for ever.
  bool may_execute(uintptr_t /*address*/) const override { return false; }
  // Ends the resident view: code runs its instrumented version from now on.
  void watch() override;
  bool has_view() const override { return view_ && view_->is_active(); }
  bool admit_to_view(uintptr_t address, bool is_store) override;
  void grow(BlockId first, uint64_t count, uint64_t live_bytes, bool has_contents) override;
  void grown(BlockId, uint64_t) override {}
  // cache::Options::no_frame: the view's pins go.
  static void give_up_view();
  InChild forked() override;
  void settle_counters() override;
  uint64_t metadata_bytes() const override;

  // This thread's translator, or that of its handler which runs, made if need be.
  Translator& translator();
  // The same for who has just come from the program's code, which may have left a handler by a jump.
  Translator& entered();
  // Flushes this thread's SATC, as at its end. For tests and for shutdown.
  void end_thread();
  const PinBudget& budget() const { return budget_; }

 protected:
  // Takes the blocks out of this thread's SATC, and back what foreign code was given of them.
  bool withdraw(BlockId first, uint64_t count) override;
  void before_flush(BlockId first, uint64_t count) override;

 private:
  void withdraw_from_view(BlockId first, uint64_t count);
  Translator& make_translator();
  static void thread_ended(void*);
  void close_thread();
  void note_thread();
  void forget_thread();

  // A thread's direct hits, which instrumented code counts where only
  // that thread writes, and how many the counters have.
  struct LiveThread {
    const __spw_thread* block;
    uint64_t counted;
    void settle();
  };

  TranslatorConfig config_;
  PinBudget budget_;
  std::optional<AliasTable> aliases_;
  std::optional<ResidentView> view_;
  pthread_key_t key_{};
  void (*view_ends_)();
  Atomic<uint64_t> satc_bytes_{0};
  Atomic<uint32_t> held_windows_{0};
  bool forked_ = false;
  std::mutex live_mutex_;
  std::vector<LiveThread> live_;
};

}  // namespace spw::access
