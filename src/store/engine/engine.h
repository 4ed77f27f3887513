// Engines: how the steps of a queue's requests reach the kernel, asynchronously. A TransferQueue owns one engine each,
// turns requests into steps, and never has more steps at an engine than its depth.
//
// Threads: issue() and harvest() by one thread at a time; wait() in
// one more thread at the same time; kick() and wake() from any.
// Lifetime: what a step points to stays until its result has been harvested.
// An engine yields exactly one result for each step, in any order.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "store/store.h"

namespace spw::store {

// One step of a request: one system call's worth.
struct RawIo {
  Op op = Op::kRead;
  int fd = -1;
  const iovec* segments = nullptr;  // reads and writes
  uint32_t segment_count = 0;
  uint32_t slot = 0;  // the queue's own
  uint64_t offset_bytes = 0;
  uint64_t bytes = 0;
};

struct RawResult {
  uint32_t slot = 0;
  int64_t result = 0;    // bytes moved, or a negative errno
  bool lasting = false;  // an error that was retried already
};

class IoEngine {
 public:
  virtual ~IoEngine() = default;
  // Takes the steps, which are under way after the next kick(), or wait() that sleeps, at the latest. Never refuses:
  // one that cannot be started yields its errno as a result.
  virtual void issue(std::span<const RawIo> ios) = 0;
  virtual void kick() {}
  // Takes results that are there; never blocks.
  virtual size_t harvest(std::span<RawResult> out) = 0;
  // As IoQueue's.
  virtual void wait(uint64_t timeout_ns) = 0;
  virtual void wake() = 0;
  // As IoQueue's.
  virtual std::optional<Sleep> sleep() { return std::nullopt; }
};

enum class IoEngineKind : uint8_t { kAuto, kUring, kAio, kThreads };

// "auto", "io_uring", "libaio", "threads".
std::string_view engine_name(IoEngineKind kind);
Result<IoEngineKind> parse_engine(std::string_view name);

class WorkerPool;

// What kAuto stands for: libaio where the kernel allows it, once that pays, and threads elsewhere. io_uring is for who
// asks for it by name (aio_engine.h says why).
IoEngineKind choose_engine();
// The threads of kAuto are engine_workers(). `workers` is what the thread engine runs on that was asked for by name; it
// outlives the engine.
Result<std::unique_ptr<IoEngine>> create_engine(IoEngineKind kind, size_t depth, WorkerPool& workers);

// The process's threads for what the kernel would do in the thread that submits, for all engines together: two a
// processor, at least 8 and at most kWorkers. Until they are started, and where they cannot be, steps are done by
// whoever hands them over.
WorkerPool& engine_workers();
// By whoever opens a store, not by one that transfers (thread_engine.h says why); again: nothing more.
void start_engine_workers();
// In a forked child, by the only thread there is: what all its parent's engines have in common is its parent's.
void engines_in_child();

// Does one step in the calling thread.
int64_t run_io(const RawIo& io);

}  // namespace spw::store
