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
#include <optional>

#include "base/atomic.h"
#include "front/translate/alias_table.h"
#include "front/translate/translator.h"
#include "region/managed_access.h"

namespace spw::front {

struct EngineOptions {
  unsigned block_shift = 12;
  uint32_t expected_threads = 1;
  const platform::File* frames = nullptr;  // the frame pool's memory file; none: foreign code is not served
};

class TranslatedEngine final : public region::ManagedAccess {
 public:
  TranslatedEngine(cache::SharedCache& cache, const EngineOptions& options, void (*fatal)(const Status&));
  ~TranslatedEngine() override;

  region::Window pin(uintptr_t address, size_t max_bytes, cache::Access access) override;
  void unpin(const region::Window& window) override;
  bool copy_few(void* to, const void* from, size_t bytes) override;

  // A window that stays until release(), whatever is translated meanwhile; data is nullptr when this thread holds
  // kWindowsPerThread or all threads kHeldWindowsMax already.
  region::Window hold(uintptr_t address, size_t max_bytes, cache::Access access);
  // False: no such window is held.
  bool release(const region::Window& window);

  // This thread's translator, registering the thread if need be.
  Translator& translator();
  // A fault at `address`, which is managed, in code that was not recompiled: makes it accessible. False: not served.
  bool admit_foreign(uintptr_t address, bool store);
  // The range is about to be given back: no mapping of it may outlive it.
  void withdraw_foreign(uintptr_t address, uint64_t bytes);
  // Called in a forked child, by the only thread there is.
  void forked();
  // Flushes this thread's SATC, as at its end. For tests and for shutdown.
  void end_thread();
  uint64_t satc_bytes() const { return satc_bytes_.load_relaxed(); }
  const PinBudget& budget() const { return budget_; }

 private:
  Translator& register_thread();
  static void thread_ended(void* translator);
  void close(Translator* translator);

  TranslatorConfig config_;
  PinBudget budget_;
  std::optional<AliasTable> aliases_;
  pthread_key_t key_{};
  Atomic<uint64_t> satc_bytes_{0};
  Atomic<uint32_t> held_windows_{0};
  bool forked_ = false;
};

}  // namespace spw::front
