#include "store/engine/progress.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/check.h"
#include "base/need.h"
#include "base/units.h"
#include "store/space.h"
#include "telemetry/counters.h"

namespace spw::store {

namespace {

using telemetry::Counter;

bool is_transient(int error) {
  return error == EINTR || error == EAGAIN || error == EIO ||
         error == ECANCELED;  // ECANCELED: its submitter has exited
}

// What discards write where holes cannot be punched.
constexpr uint64_t kZerosBytes = 64 * kKiB;
alignas(kMmuPageBytes) constinit const std::byte kZeros[kZerosBytes] = {};

void note_written(Atomic<uint64_t>& end, uint64_t written) {
  uint64_t now = end.load_relaxed();
  while (now < written && !end.cas_weak_release(now, written)) {
  }
}

}  // namespace

void Progress::begin(const Request& request, const Target& target) {
  request_ = &request;
  target_ = &target;
  size_bytes_ = target.size();
  total_bytes_ = request.bytes();
  done_bytes_ = 0;
  op_ = request.op;
  over_ = false;
  retries_ = 0;
  error_ = 0;
  fault_ = Fault{};
  if (op_ == Op::kRead && target.counts_requests) telemetry::count(Counter::store_reads);
  if (op_ == Op::kWrite && target.counts_requests) telemetry::count(Counter::store_writes);
  if (int error = check()) return finish(error);
  if (op_ == Op::kWrite && target.growth != nullptr)
    note_written(target.growth->written_end, request.offset_bytes + write_end());
  if (target.faults) fault_ = target.faults->next(op_);
  bool nothing_to_do = op_ == Op::kSync ? target.spill : total_bytes_ == 0;
  if (nothing_to_do && fault_.error == 0) finish(0);
}

// 0 or EINVAL.
int Progress::check() const {
  if (op_ == Op::kSync) return 0;
  uint64_t misaligned = request_->offset_bytes;
  if (op_ == Op::kDiscard) {
    misaligned |= request_->discard_bytes;
  } else {
    if (request_->segment_count > kSegmentsMax) return EINVAL;
    for (uint32_t i = 0; i < request_->segment_count; ++i)
      misaligned |=
          reinterpret_cast<uintptr_t>(request_->segments[i].iov_base) | request_->segments[i].iov_len;
  }
  if (misaligned & (target_->alignment_bytes - 1)) return EINVAL;
  if (request_->offset_bytes >= size_bytes_) return EINVAL;
  uint64_t room = size_bytes_ - request_->offset_bytes;
  return total_bytes_ > room && total_bytes_ - room >= kMaxBlockBytes ? EINVAL : 0;
}

// How many of the request's bytes a write moves: not those behind the end of a file that has one.
uint64_t Progress::write_end() const {
  if (target_->spill) return total_bytes_;
  return std::min(total_bytes_, size_bytes_ - request_->offset_bytes);
}

uint64_t Progress::step_bytes() const {
  uint64_t bytes = total_bytes_ - done_bytes_;
  if (op_ == Op::kWrite) {
    uint64_t end = write_end();
    uint64_t aligned_end = round_down(end, target_->alignment_bytes);
    bytes = (done_bytes_ < aligned_end ? aligned_end : end) - done_bytes_;
  }
  if (op_ == Op::kWrite && request_->op == Op::kDiscard) bytes = std::min(bytes, kZerosBytes * kSegmentsMax);
  if (uint64_t piece = target_->piece_bytes; piece != 0 && op_ != Op::kDiscard)
    bytes = std::min(bytes, piece - (request_->offset_bytes + done_bytes_) % piece);
  return bytes;
}

// The fault: half of the blocks.
void Progress::shorten(uint64_t* bytes) {
  if (fault_.shorten && *bytes >= 2 * target_->alignment_bytes)
    *bytes = std::max(target_->alignment_bytes, round_down(*bytes / 2, target_->alignment_bytes));
  fault_.shorten = false;
}

bool Progress::next(RawIo* io) {
  while (!over_ && fault_.failures_left > 0) {
    --fault_.failures_left;
    finish_step(-fault_.error);
  }
  if (over_) return false;
  io->op = op_;
  io->fd = target_->fd.load_relaxed();
  io->offset_bytes = target_->begin_bytes + request_->offset_bytes + done_bytes_;
  planned_bytes_ = op_ == Op::kSync ? 0 : step_bytes();
  io->bytes = planned_bytes_;
  shorten(&io->bytes);
  if (op_ == Op::kDiscard || op_ == Op::kSync) return true;
  if (io->bytes % target_->alignment_bytes != 0 || done_bytes_ % target_->alignment_bytes != 0)
    io->fd = target_->tail_fd.load_relaxed();
  if (op_ == Op::kWrite && target_->growth != nullptr && target_->growth->to_kernel.load_relaxed() > 0)
    io->fd = target_->tail_fd.load_relaxed();
  if (request_->op == Op::kDiscard) {
    point_to_zeros(io->bytes, io);
  } else if (done_bytes_ == 0 && io->bytes == total_bytes_) {
    io->segments = request_->segments;
    io->segment_count = request_->segment_count;
  } else {
    cut_segments(io->bytes, io);
  }
  if (fault_.damage == Damage::kNone) return true;
  if (fault_.damage == Damage::kLost) {
    finish_step(static_cast<int64_t>(io->bytes));
    return next(io);
  }
  spoil(io);
  return true;
}

// The fault of a transfer that ends well and is wrong: as far as it happens before the transfer.
void Progress::spoil(RawIo* io) {
  if (fault_.damage == Damage::kElsewhere) {
    const uint64_t bytes = round_up(io->bytes, target_->alignment_bytes);
    io->offset_bytes = io->offset_bytes >= bytes ? io->offset_bytes - bytes : io->offset_bytes + bytes;
    return;
  }
  if (op_ != Op::kWrite) return;
  if (spoiled_.bytes() < io->bytes) {
    auto memory = platform::map_anonymous(round_up(io->bytes, kMmuPageBytes));
    need(memory.status());
    spoiled_ = std::move(*memory);
  }
  std::byte* to = spoiled_.data();
  for (const iovec& segment : std::span(io->segments, io->segment_count)) {
    std::memcpy(to, segment.iov_base, segment.iov_len);
    to += segment.iov_len;
  }
  damage(fault_.damage, spoiled_.data(), io->bytes, io->offset_bytes);
  cut_[0] = {spoiled_.data(), io->bytes};
  io->segments = cut_;
  io->segment_count = 1;
}

// As far as it happens after it.
void Progress::spoil_read(uint64_t bytes) {
  RawIo io;
  cut_segments(bytes, &io);
  for (const iovec& segment : std::span(io.segments, io.segment_count))
    damage(fault_.damage, static_cast<std::byte*>(segment.iov_base), segment.iov_len, request_->offset_bytes);
}

// Segments for request bytes [done, done + bytes).
void Progress::cut_segments(uint64_t bytes, RawIo* io) {
  uint64_t skip = done_bytes_;
  uint32_t count = 0;
  for (uint32_t i = 0; i < request_->segment_count && bytes > 0; ++i) {
    iovec segment = request_->segments[i];
    if (skip >= segment.iov_len) {
      skip -= segment.iov_len;
      continue;
    }
    uint64_t length = std::min<uint64_t>(segment.iov_len - skip, bytes);
    cut_[count++] = {static_cast<std::byte*>(segment.iov_base) + skip, length};
    bytes -= length;
    skip = 0;
  }
  io->segments = cut_;
  io->segment_count = count;
}

void Progress::point_to_zeros(uint64_t bytes, RawIo* io) {
  uint32_t count = 0;
  for (; bytes > 0; bytes -= cut_[count++].iov_len)
    cut_[count] = {const_cast<std::byte*>(kZeros), std::min(bytes, kZerosBytes)};  // only ever written from
  io->segments = cut_;
  io->segment_count = count;
}

void Progress::finish_step(int64_t result, bool lasting) {
  SPW_DCHECK(!over_);
  if (result < 0 && lasting) return finish(static_cast<int>(-result));
  if (result < 0) return finish_failed_step(static_cast<int>(-result));
  switch (op_) {
    case Op::kRead:
      return finish_read_step(static_cast<uint64_t>(result));
    case Op::kWrite:
      return finish_write_step(static_cast<uint64_t>(result));
    case Op::kDiscard:
      if (target_->space) target_->space->forget(request_->offset_bytes, total_bytes_);
      return finish(0);
    case Op::kSync:
      return finish(0);
  }
}

void Progress::finish_read_step(uint64_t bytes) {
  if (fault_.damage != Damage::kNone) spoil_read(bytes);
  uint64_t done = done_bytes_ + bytes;
  bool reached_end = request_->offset_bytes + done >= size_bytes_;
  // Less than one aligned piece: there is no more in the file itself.
  const bool is_all = round_down(done, target_->alignment_bytes) <= done_bytes_ && done < total_bytes_;
  if (reached_end || (bytes == 0 && target_->spill) || (is_all && target_->growth != nullptr)) {
    zero_behind(std::min(done, size_bytes_ - request_->offset_bytes));
    return finish(0);
  }
  if (done >= total_bytes_) return finish(0);
  if (bytes == 0)
    return finish(EIO);  // somebody made the file shorter: what it held is lost, and is no zeros
  continue_from(done);
}

void Progress::finish_write_step(uint64_t bytes) {
  uint64_t done = done_bytes_ + bytes;
  if (done >= write_end()) return finish(0);
  continue_from(done);
}

void Progress::finish_failed_step(int error) {
  if (op_ == Op::kDiscard && (error == EOPNOTSUPP || error == ENODEV)) {
    op_ = Op::kWrite;
    return;
  }
  retry_or_fail(error);
}

// Goes on behind a short transfer, from an aligned offset, even if some bytes are moved twice.
void Progress::continue_from(uint64_t done_bytes) {
  uint64_t aligned = round_down(done_bytes, target_->alignment_bytes);
  if (aligned <= done_bytes_) return retry_or_fail(EIO);
  if (done_bytes - done_bytes_ < planned_bytes_) telemetry::count(Counter::store_retries);
  done_bytes_ = aligned;
  retries_ = 0;
}

void Progress::retry_or_fail(int error) {
  // Linux says once that something was lost on its way to the disk: a second sync would say that all is well.
  const bool is_final = op_ == Op::kSync ? error != EINTR && error != EAGAIN : !is_transient(error);
  if (is_final || retries_ == kRetriesMax) return finish(error);
  ++retries_;
  telemetry::count(Counter::store_retries);
}

// Clears what of the request's segments lies behind its first `done_bytes`.
void Progress::zero_behind(uint64_t done_bytes) {
  for (uint32_t i = 0; i < request_->segment_count; ++i) {
    const iovec& segment = request_->segments[i];
    if (done_bytes < segment.iov_len)
      std::memset(static_cast<std::byte*>(segment.iov_base) + done_bytes, 0, segment.iov_len - done_bytes);
    done_bytes -= std::min<uint64_t>(done_bytes, segment.iov_len);
  }
}

void Progress::finish(int error) {
  over_ = true;
  error_ = error;
  if (error != 0 || !target_->counts_requests) return;
  if (request_->op == Op::kRead) telemetry::count(Counter::store_read_bytes, total_bytes_);
  if (request_->op == Op::kWrite) telemetry::count(Counter::store_write_bytes, total_bytes_);
}

Status transfer_failed(int error, const Request& request, const std::string& store) {
  constexpr const char* kVerbs[] = {"read", "write", "discard", "sync"};  // by Op
  std::string what = std::string("cannot ") + kVerbs[static_cast<size_t>(request.op)];
  if (request.op == Op::kSync) return Status(error, what + " " + store);
  return Status(error, what + " " + std::to_string(request.bytes()) + " bytes at offset " +
                           std::to_string(request.offset_bytes) + " of " + store);
}

}  // namespace spw::store
