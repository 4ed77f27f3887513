// The translated engine: gives every thread a Translator at its first managed access and takes it back at its
// end.
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

#include "base/atomic.h"
#include "front/translate/alias_table.h"
#include "front/translate/translator.h"
#include "region/engine.h"

namespace spw::front {

struct EngineOptions {
  unsigned block_shift = 12;
  uint32_t expected_threads = 1;
  const platform::File* frames = nullptr;  // the frame pool's memory file; none: foreign code is not served
  SatcLevels satc = SatcLevels::kAll;
};

class TranslatedEngine final : public region::Engine {
 public:
  TranslatedEngine(cache::SharedCache& cache, const EngineOptions& options, void (*fatal)(const Status&));
  ~TranslatedEngine() override;

  region::Window pin(uintptr_t address, size_t max_bytes, cache::Access access) override;
  void unpin(const region::Window& window) override;
  bool copy_few(void* to, const void* from, size_t bytes) override;

  const char* name() const override { return "translated"; }
  cache::Client& client() override { return translator().client(); }
  // All threads together hold kHeldWindowsMax.
  region::Window hold(uintptr_t address, size_t max_bytes, cache::Access access) override;
  bool release(const region::Window& window) override;
  // Takes the blocks out of this thread's SATC, and back what foreign code was given of them.
  bool withdraw(BlockId first, uint64_t count) override;
  // A fault in code that was not recompiled: makes the block accessible there. False: not served.
  bool admit_fault(uintptr_t address, bool is_store) override;
  void forked() override;
  void settle_counters() override;
  uint64_t metadata_bytes() const override { return satc_bytes_.load_relaxed(); }

  // This thread's translator, registering the thread if need be.
  Translator& translator();
  // Flushes this thread's SATC, as at its end. For tests and for shutdown.
  void end_thread();
  const PinBudget& budget() const { return budget_; }

 private:
  Translator& register_thread();
  static void thread_ended(void* translator);
  void close(Translator* translator);
  void forget_thread();

  // A thread's direct hits, which instrumented code counts where only that thread writes, and how many the counters have.
  struct LiveThread {
    const __spw_thread* block;
    uint64_t counted;
    void settle();
  };

  TranslatorConfig config_;
  PinBudget budget_;
  std::optional<AliasTable> aliases_;
  pthread_key_t key_{};
  Atomic<uint64_t> satc_bytes_{0};
  Atomic<uint32_t> held_windows_{0};
  bool forked_ = false;
  std::mutex live_mutex_;
  std::vector<LiveThread> live_;
};

}  // namespace spw::front
