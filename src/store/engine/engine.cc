#include "store/engine/engine.h"

#include <array>

#include "platform/file.h"
#include "store/engine/aio_engine.h"
#include "store/engine/thread_engine.h"
#include "store/engine/uring_engine.h"

namespace spw::store {

namespace {

constexpr std::array<std::string_view, 4> kNames = {"auto", "io_uring", "libaio",
                                                    "threads"};  // by IoEngineKind
constexpr IoEngineKind kPreference[] = {IoEngineKind::kUring, IoEngineKind::kAio, IoEngineKind::kThreads};

Result<std::unique_ptr<IoEngine>> create_kind(IoEngineKind kind, size_t depth, WorkerPool& workers) {
  if (kind == IoEngineKind::kUring) return UringEngine::create(depth);
  if (kind == IoEngineKind::kAio) return AioEngine::create(depth);
  return std::unique_ptr<IoEngine>(std::make_unique<ThreadEngine>(depth, workers));
}

}  // namespace

std::string_view engine_name(IoEngineKind kind) { return kNames[static_cast<size_t>(kind)]; }

Result<IoEngineKind> parse_engine(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<IoEngineKind>(i);
  return Status::sentence(EINVAL, "no I/O engine is called \"" + std::string(name) + "\"");
}

// To ask is dear, and what has worked once is not asked again: should
// it not work any more, create_engine() takes another one.
IoEngineKind choose_engine() {
  constexpr size_t kProbeDepth = 2;
  static Atomic<bool> uring_works{false};
  if (uring_works.load_relaxed()) return IoEngineKind::kUring;
  if (UringEngine::create(kProbeDepth)) {
    uring_works.store_relaxed(true);
    return IoEngineKind::kUring;
  }
  if (AioEngine::create(kProbeDepth)) return IoEngineKind::kAio;
  return IoEngineKind::kThreads;
}

Result<std::unique_ptr<IoEngine>> create_engine(IoEngineKind kind, size_t depth, WorkerPool& workers) {
  if (kind != IoEngineKind::kAuto) return create_kind(kind, depth, workers);
  for (IoEngineKind candidate : kPreference)
    if (auto engine = create_kind(candidate, depth, workers)) return engine;
  return Status::sentence(ENOSYS, "no I/O engine works here");
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
