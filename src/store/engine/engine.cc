#include "store/engine/engine.h"

#include <algorithm>
#include <array>

#include "platform/file.h"
#include "platform/machine.h"
#include "store/engine/aio_engine.h"
#include "store/engine/thread_engine.h"
#include "store/engine/uring_engine.h"

namespace spw::store {

namespace {

constexpr std::array<std::string_view, 4> kNames = {"auto", "io_uring", "libaio",
                                                    "threads"};  // by IoEngineKind

constinit Atomic<WorkerPool*> the_workers{nullptr};  // engine_workers(), once there are any

Result<std::unique_ptr<IoEngine>> create_kind(IoEngineKind kind, size_t depth, WorkerPool& workers) {
  if (kind == IoEngineKind::kUring) return UringEngine::create(depth);
  if (kind == IoEngineKind::kAio) return AioEngine::create(depth, AioEngine::Context::kAtOnce);
  return std::unique_ptr<IoEngine>(std::make_unique<ThreadEngine>(depth, workers));
}

}  // namespace

std::string_view engine_name(IoEngineKind kind) { return kNames[static_cast<size_t>(kind)]; }

Result<IoEngineKind> parse_engine(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<IoEngineKind>(i);
  return Status::sentence(EINVAL, "no I/O engine is called \"" + std::string(name) + "\"");
}

IoEngineKind choose_engine() { return AioContext::exist() ? IoEngineKind::kAio : IoEngineKind::kThreads; }

Result<std::unique_ptr<IoEngine>> create_engine(IoEngineKind kind, size_t depth, WorkerPool& workers) {
  if (kind != IoEngineKind::kAuto) return create_kind(kind, depth, workers);
  if (choose_engine() == IoEngineKind::kAio) return AioEngine::create(depth, AioEngine::Context::kWhenItPays);
  return create_kind(IoEngineKind::kThreads, depth, engine_workers());
}

// No function's own static object: a fork might find it half made.
WorkerPool& engine_workers() {
  WorkerPool* known = the_workers.load_acquire();
  if (known) return *known;
  auto made = std::make_unique<WorkerPool>(run_io, false);
  if (the_workers.cas_strong_acq_rel(known, made.get()))
    return *made.release();  // its threads end with the process
  return *the_workers.load_acquire();
}

void start_engine_workers() {
  constexpr unsigned kFewest = 8;  // some file systems wait for a network
  engine_workers().start(std::clamp(2 * platform::cpu_count(), kFewest, kWorkers));
}

void engines_in_child() {
  AioContext::in_child();
  the_workers.store_release(nullptr);
}

int64_t run_io(const RawIo& io) {
  switch (io.op) {
    case Op::kRead:
      return platform::read_at(io.fd, io.segments, io.segment_count, io.offset_bytes);
    case Op::kWrite:
      return platform::write_at(io.fd, io.segments, io.segment_count, io.offset_bytes);
    case Op::kDiscard:
      return platform::punch_hole(io.fd, io.offset_bytes, io.bytes);
    case Op::kSync:
      return platform::sync_data(io.fd);
  }
  return -EINVAL;
}

}  // namespace spw::store
