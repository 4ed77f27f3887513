// The mapped engine with a store in memory, for the tests of its parts.
#pragma once

#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "abi/abi.h"
#include "abi/managed.h"
#include "access/mapped/engine.h"
#include "access/version_switch.h"
#include "base/check.h"
#include "base/in_runtime.h"
#include "base/units.h"
#include "heap/heap.h"
#include "store/fault_plan.h"
#include "store/memory_store.h"
#include "telemetry/counters.h"

namespace spw::access {

using telemetry::Counter;

inline constexpr unsigned kShift = 12;
inline constexpr uint64_t kSpaceBytes = kGiB;
inline constexpr uint32_t kFrames = 1024;
inline constexpr uintptr_t kFirst = SPW_MANAGED_BASE + region::kFirstBytes;

inline void fail(const Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::abort();
}
inline void fail_io(void*, const Status& status) { fail(status); }

inline uint64_t counted(Counter counter) { return telemetry::total(telemetry::read_totals(), counter); }

// Every test can be run a second time as where userfaultfd is forbidden.
inline bool has_userfault() {
  const char* pretended = std::getenv("SPILLWAY_TEST_USERFAULT");
  return pretended == nullptr || std::string(pretended) != "none";
}

inline sigjmp_buf g_faulted;
inline bool g_expects_fault = false;  // a signal that the engine does not serve
inline void note_fault(int) { siglongjmp(g_faulted, 1); }

// Whoever faults serves it, as in process/fault_handler.cc, while one lives.
class FaultSignals {
 public:
  FaultSignals() {
    struct sigaction action{};
    action.sa_sigaction = &serve;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGBUS, &action, &bus_);
    sigaction(SIGSEGV, &action, &segv_);
  }
  ~FaultSignals() {
    sigaction(SIGBUS, &bus_, nullptr);
    sigaction(SIGSEGV, &segv_, nullptr);
  }

 private:
  static void serve(int signal, siginfo_t* info, void* context) {
    const int saved_errno = errno;
    const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
    const bool is_store = (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
    const bool is_own = InRuntime::here();
    MappedEngine* engine = g_engine.load_acquire();
    const bool is_served = is_managed(address) && engine != nullptr &&
                           (signal == SIGBUS ? engine->bring_in_fault(address, is_store, is_own)
                                             : engine->admit_fault(address, is_store, is_own));
    errno = saved_errno;
    if (is_served) return;
    if (g_expects_fault && signal == SIGSEGV) note_fault(signal);
    std::fprintf(stderr, "signal %d at %#zx is nobody's\n", signal, static_cast<size_t>(address));
    std::abort();
  }
  struct sigaction bus_{}, segv_{};
};

// Whether a store to `address` ends in SIGSEGV. `signals`: who serves the others, if somebody does.
inline bool faults(uintptr_t address, const FaultSignals* signals) {
  struct sigaction action{}, before;
  action.sa_handler = &note_fault;
  if (!signals) sigaction(SIGSEGV, &action, &before);
  g_expects_fault = true;
  volatile bool faulted = false;
  if (sigsetjmp(g_faulted, 1) == 0)
    *reinterpret_cast<volatile char*>(address) = 1;
  else
    faulted = true;
  g_expects_fault = false;
  if (!signals) sigaction(SIGSEGV, &before, nullptr);
  return faulted;
}

// What runtime/ does, with a store in memory. Every test has the
// whole engine to itself: managed space is one a process.
class MappedEngineTest : public testing::Test {
 protected:
  virtual bool watches_at_once() const { return true; }
  virtual bool tunes_fills() const { return false; }
  virtual bool reads_ahead() const { return true; }
  virtual std::string policy() const { return cache::Options().policy; }
  virtual unsigned block_shift() const { return kShift; }
  virtual uint64_t in_place_bytes() const { return kSpaceBytes; }
  virtual uint32_t frames() const { return kFrames; }
  virtual FaultChoice faults_by() const { return FaultChoice::kEvents; }
  virtual void (*tells_errors() const)(void*, const Status&) { return &fail_io; }

  void SetUp() override {
    if (Status status = platform::UserFault::open().status(); has_userfault() && !status)
      GTEST_SKIP() << status.message();
    store_ = std::move(*store::MemoryStore::create(kSpaceBytes, &plan_));
    regions_ = std::move(*region::RegionMap::create(block_shift(), kSpaceBytes, *store_));
    MappedOptions options;
    options.block_shift = block_shift();
    options.space_bytes = in_place_bytes();
    options.faults_by = faults_by();
    options.has_userfault = has_userfault();
    if (faults_by() != FaultChoice::kEvents || !has_userfault()) signals_ = std::make_unique<FaultSignals>();
    options.faults.fillers = 4;
    options.room.evictors = 0;
    options.watches_at_once = watches_at_once();
    options.fatal = &fail;
    engine_ = std::move(*MappedEngine::create(options));
    cache::Options for_cache;
    for_cache.frame_count = frames();
    for_cache.block_shift = block_shift();
    for_cache.partitions = frames() >= 1024 ? 4 : 1;
    for_cache.tunes_fills = tunes_fills();
    for_cache.policy = policy();
    if (!reads_ahead()) for_cache.readahead_blocks_max = 0;
    cache_ = std::move(*cache::SharedCache::create(for_cache, *regions_, tells_errors(), nullptr,
                                                   std::move(*engine_->make_frames(frames()))));
    SPW_CHECK(engine_->start(*cache_, *regions_).is_ok());
    regions_->attach(engine_.get());
  }
  void TearDown() override {
    if (!engine_) return;
    regions_->attach(nullptr);
    // Until no transfer is in flight: it would end in frames that are gone.
    // Whoever served the last fault may begin one after he woke who faulted.
    engine_->stop();
    cache_->discard(engine_->client(), BlockId(0), kSpaceBytes >> block_shift());
    cache_->check_invariants();
    engine_.reset();
    cache_.reset();
    access::VersionSwitch::set(false);  // the process's: after the last of the engine's threads
  }

  std::byte* add(uint64_t bytes) {
    regions_->add_anonymous(kFirst, bytes);
    return reinterpret_cast<std::byte*>(kFirst);
  }
  bool faults(uintptr_t address) const { return access::faults(address, signals_.get()); }
  // As the interposed mprotect().
  int protect(void* address, size_t bytes, int protection) {
    const auto error = engine_->program_protects(reinterpret_cast<uintptr_t>(address), bytes, protection);
    if (error) errno = *error;
    return error ? *error == 0 ? 0 : -1 : mprotect(address, bytes, protection);
  }
  static int hint(const void* p) {
    return *reinterpret_cast<const volatile int8_t*>((reinterpret_cast<uintptr_t>(p) >> SPW_HINT_SHIFT) +
                                                     SPW_HINT_OFFSET);
  }
  static bool is_resident(std::byte* p) {
    unsigned char there = 0;
    SPW_CHECK(mincore(p, 4096, &there) == 0);
    return (there & 1) != 0;
  }
  // Goes through so much memory that what was there before is evicted.
  static void push_out(std::byte* base, uint64_t from_block) {
    for (uint64_t i = 0; i < 2 * kFrames; ++i) base[(from_block + i) << kShift] = std::byte{1};
  }

  std::unique_ptr<FaultSignals> signals_;
  store::FaultPlan plan_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<region::RegionMap> regions_;
  std::unique_ptr<MappedEngine> engine_;
  std::unique_ptr<cache::SharedCache> cache_;
};

}  // namespace spw::access
