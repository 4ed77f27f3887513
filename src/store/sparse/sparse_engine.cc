#include "store/sparse/sparse_engine.h"

#include <algorithm>
#include <cstring>

namespace spw::store {

namespace {

int64_t read_zeros(const RawIo& io) {
  for (uint32_t i = 0; i < io.segment_count; ++i)
    std::memset(io.segments[i].iov_base, 0, io.segments[i].iov_len);
  return static_cast<int64_t>(io.bytes);
}

// Segment by segment; the last one ends with the store, so a range that reaches the store's end holds all of it.
int64_t discard(Segments& segments, const RawIo& io) {
  const Shape& shape = segments.directory().shape();
  uint64_t end = io.offset_bytes + io.bytes;
  if (end >= shape.size_bytes) end = shape.segment_count() * shape.segment_bytes;
  for (uint64_t at = io.offset_bytes; at < end;) {
    uint64_t segment = at / shape.segment_bytes;
    uint64_t upto = std::min((segment + 1) * shape.segment_bytes, end);
    int64_t result = segments.discard(segment, at - segment * shape.segment_bytes, upto - at);
    if (result < 0) return result;
    at = upto;
  }
  return 0;
}

// Finds the segment of a read or write and makes the step one of its
// file. `*fd` == -1: there is none, and none is needed.
int use_segment(Segments& segments, RawIo& io, uint64_t* segment) {
  uint64_t bytes = segments.directory().shape().segment_bytes;
  bool write = io.op == Op::kWrite;
  if (write && segments.directory().is_read_only()) return EBADF;
  *segment = io.offset_bytes / bytes;
  auto fd = segments.use(*segment, write ? Segments::Missing::kCreate : Segments::Missing::kLeave);
  if (!fd) return fd.status().error();
  io.fd = *fd;
  io.offset_bytes -= *segment * bytes;
  return 0;
}

}  // namespace

int64_t run_sparse_io(Segments& segments, const RawIo& io) {
  if (io.op == Op::kSync) return segments.sync();
  if (io.op == Op::kDiscard) return discard(segments, io);
  RawIo on_file = io;
  uint64_t segment = 0;
  if (int error = use_segment(segments, on_file, &segment)) return -error;
  if (on_file.fd < 0) return read_zeros(io);
  int64_t result = run_io(on_file);
  segments.release(segment, io.op == Op::kWrite);
  return result;
}

SparseEngine::SparseEngine(std::unique_ptr<IoEngine> files, Segments& segments, WorkerPool& workers,
                           size_t depth)
    : files_(std::move(files)),
      segments_(segments),
      workers_(workers),
      done_(depth, [this] { files_->wake(); }),
      uses_(depth) {
  to_files_.reserve(depth);
  to_workers_.reserve(depth);
  at_once_.reserve(depth);
}

void SparseEngine::issue(std::span<const RawIo> ios) {
  to_files_.clear();
  to_workers_.clear();
  at_once_.clear();
  for (const RawIo& io : ios) {
    if (io.op == Op::kDiscard || io.op == Op::kSync) {
      to_workers_.push_back(io);
    } else {
      issue_transfer(io);
    }
  }
  if (!to_files_.empty()) files_->issue(to_files_);
  if (!to_workers_.empty()) workers_.submit(to_workers_, done_);
  if (!at_once_.empty()) done_.put(at_once_);
}

void SparseEngine::issue_transfer(const RawIo& io) {
  RawIo on_file = io;
  Use& use = uses_[io.slot];
  use.written = io.op == Op::kWrite;
  if (int error = use_segment(segments_, on_file, &use.segment)) {
    at_once_.push_back({io.slot, -error});
  } else if (on_file.fd < 0) {
    at_once_.push_back({io.slot, read_zeros(io)});
  } else {
    to_files_.push_back(on_file);
  }
}

size_t SparseEngine::harvest(std::span<RawResult> out) {
  size_t taken = files_->harvest(out);
  for (const RawResult& result : out.first(taken)) {
    const Use& use = uses_[result.slot];
    segments_.release(use.segment, use.written);
  }
  return taken + done_.take(out.subspan(taken));
}

void SparseEngine::wait(uint64_t timeout_ns) {
  // What comes after this look wakes files_.
  if (done_.is_empty()) files_->wait(timeout_ns);
}

}  // namespace spw::store
