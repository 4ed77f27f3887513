#include "store/sparse_store.h"

#include <algorithm>

#include "store/engine/transfer_queue.h"
#include "store/file_store.h"
#include "store/sparse/sparse_engine.h"

namespace spw::store {

namespace {

struct Directness {
  bool direct = false;
  uint64_t alignment_bytes = kMmuPageBytes;
};

// What transfers in `directory` can be, found out with a file of no
// name; where nothing can be written, they are buffered.
Directness probe(const std::string& directory, bool wanted) {
  Directness found;
  if (!wanted) return found;
  auto file = platform::open_spill_file(directory);
  if (!file) return found;
  auto opened = platform::reopen_file(file->fd(), platform::Direct::kIfPossible);
  if (!opened || !opened->direct) return found;
  found.direct = true;
  found.alignment_bytes = std::max(kMmuPageBytes, platform::direct_alignment(opened->file));
  return found;
}

}  // namespace

SparseStore::SparseStore()
    : sparse_workers_([this](const RawIo& io) { return run_sparse_io(*segments_, io); }) {}

Result<std::unique_ptr<SparseStore>> SparseStore::open(const std::string& path,
                                                       const SparseOptions& options) {
  Shape shape = options.shape;
  if (options.access == Access::kSpill && shape.size_bytes == 0) shape.size_bytes = kSpillBytesMax;
  auto directory = SegmentDirectory::open(path, options.access, shape);
  if (!directory) return directory.status();
  std::unique_ptr<SparseStore> store(new SparseStore);
  if (Status status = store->set_up(std::move(*directory), options); !status) return status;
  return store;
}

Status SparseStore::set_up(SegmentDirectory directory, const SparseOptions& options) {
  const Shape shape = directory.shape();
  if (directory.is_nameless() && shape.segment_count() > kOpenSegmentsMax)
    return Status::sentence(
        EINVAL, "the sparse store in " + directory.path() + ": to spill, it would keep " +
                    std::to_string(shape.segment_count()) + " segments open, and at most " +
                    std::to_string(kOpenSegmentsMax) + " are possible; choose a segment of at least " +
                    format_size(round_up(shape.size_bytes / kOpenSegmentsMax + 1, kSegmentGrainBytes)));
  Directness found = probe(directory.path(), options.direct);
  if (shape.size_bytes % found.alignment_bytes != 0 || shape.segment_bytes % found.alignment_bytes != 0)
    found = Directness();
  direct_ = found.direct;
  engine_chosen_here_ = options.engine == IoEngineKind::kAuto;
  engine_ = engine_chosen_here_ ? choose_engine() : options.engine;
  if (engine_chosen_here_ || engine_ == IoEngineKind::kAio) start_engine_workers();
  target_.size_bytes = shape.size_bytes;
  target_.alignment_bytes = found.alignment_bytes;
  target_.piece_bytes = shape.segment_bytes;
  target_.faults = options.faults;
  segments_ = std::make_unique<Segments>(std::move(directory),
                                         direct_ ? platform::Direct::kIfPossible : platform::Direct::kNo);
  return Status::ok();
}

std::string SparseStore::describe() const {
  const SegmentDirectory& directory = segments_->directory();
  std::string text = "sparse:" + directory.path() + " (segments of " + format_size(shape().segment_bytes) +
                     (directory.is_nameless() ? ", spill, " : ", ");
  text += engine_name(engine_);
  return text + (direct_ ? ", O_DIRECT)" : ", buffered)");
}

std::string SparseStore::describe_at(uint64_t offset_bytes) const {
  return describe() + ", segment " + std::to_string(offset_bytes / shape().segment_bytes) + ",";
}

Result<std::unique_ptr<IoQueue>> SparseStore::open_queue(size_t depth) {
  auto files = create_engine(engine_chosen_here_ ? IoEngineKind::kAuto : engine_, depth, file_workers_);
  if (!files) return files.status();
  auto engine = std::make_unique<SparseEngine>(std::move(*files), *segments_, sparse_workers_, depth);
  return std::unique_ptr<IoQueue>(std::make_unique<TransferQueue>(std::move(engine), target_, depth));
}

Status SparseStore::transfer(Request& request) {
  Progress progress;
  int error = transfer_now(progress, request, target_,
                           [this](const RawIo& io) { return run_sparse_io(*segments_, io); });
  return error == 0 ? Status::ok() : transfer_failed(error, request, describe_at(request.offset_bytes));
}

Status SparseStore::reserve(uint64_t offset_bytes, uint64_t bytes) {
  const uint64_t segment_bytes = shape().segment_bytes;
  uint64_t end = std::min(offset_bytes + bytes, size_bytes());
  while (offset_bytes < end) {
    uint64_t segment = offset_bytes / segment_bytes;
    uint64_t upto = std::min((segment + 1) * segment_bytes, end);
    Status status = segments_->reserve(segment, offset_bytes - segment * segment_bytes, upto - offset_bytes);
    if (!status) return status;
    offset_bytes = upto;
  }
  return Status::ok();
}

}  // namespace spw::store
