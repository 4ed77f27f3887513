// Writing back: flushes of all kinds, and syncs.
#include <algorithm>
#include <mutex>
#include <utility>

#include "files/buffered_file.h"
#include "platform/time.h"
#include "telemetry/counters.h"

namespace spw::files {

using Use = store::GrowingStore::Use;

Status BufferedFile::flush_live(uint64_t offset, uint64_t bytes, uint64_t live_bytes) {
  if (offset >= live_bytes || bytes == 0) return {};
  const uint64_t block_bytes = parts_.regions.block_bytes();
  const uint64_t begin = round_down(offset, block_bytes);
  const uint64_t end = bytes < live_bytes - offset ? round_up(offset + bytes, block_bytes) : live_bytes;
  const bool is_all = begin == 0 && end == live_bytes;
  if (is_all) {
    flushed_at_ns_.store_relaxed(platform::monotonic_ns());
    dirty_.begin_flush();
  }
  const Status status = knows_its_dirty_blocks() ? flush_by_index(begin, end)
                                                 : parts_.regions.flush(address_ + begin, end - begin);
  if (is_all) dirty_.end_flush();
  return status;
}

Status BufferedFile::flush_by_index(uint64_t begin, uint64_t end) {
  const unsigned shift = parts_.regions.block_shift();
  uint64_t from = begin >> shift;
  cache::Flushing flushing;
  cache::Client& client = parts_.engine.client();
  parts_.cache.begin_flush(
      client, [&] { return next_dirty(&from, (end >> shift) - 1, kRunBlocksMax); }, &flushing);
  return parts_.cache.end_flush(client, &flushing);
}

cache::BlockRun BufferedFile::next_dirty(uint64_t* from, uint64_t last, uint64_t blocks_max) {
  const auto run = *from <= last ? dirty_.next(*from, last, blocks_max) : PageIndex::Run();
  if (run.count == 0) return {};
  *from = run.first + run.count;
  return {block_at(run.first << parts_.regions.block_shift()), run.count};
}

bool BufferedFile::flush_some(uint64_t blocks_max, bool waits) {
  std::unique_lock turn(flush_turn_, std::try_to_lock);
  if (!turn) return false;
  std::shared_lock lock(io_);
  if (is_parked_ || !retired_) return false;
  cache::Client& client = parts_.engine.client();
  Status written;
  bool is_over = true;
  if (waits)
    written = parts_.cache.end_flush(client, &begun_);
  else
    is_over = parts_.cache.try_end_flush(client, &begun_, &written);
  if (!written) retry_at_ns_ = platform::monotonic_ns() + kRetryNs;
  if (!is_over || (retry_at_ns_ != 0 && retry_at_ns_ > platform::monotonic_ns())) return false;
  retry_at_ns_ = 0;
  uint64_t left = blocks_max;
  const auto next = [&]() -> cache::BlockRun {
    if (left == 0) return {};
    cache::BlockRun run = next_dirty(&flush_cursor_, UINT64_MAX >> 1, left);
    if (run.count == 0 && std::exchange(flush_cursor_, 0) > 0)
      run = next_dirty(&flush_cursor_, UINT64_MAX >> 1, left);
    left -= run.count;
    return run;
  };
  parts_.cache.begin_flush(client, next, &begun_);
  return left < blocks_max;
}

Status BufferedFile::flush(uint64_t offset, uint64_t bytes) {
  if (!dirty_.is_complete()) return flush_alone();
  std::shared_lock lock(io_);
  if (is_parked_ || !retired_) return {};
  std::unique_lock growth(growth_);
  const uint64_t live_bytes = live_bytes_;
  growth.unlock();
  if (Status status = flush_live(offset, bytes, live_bytes); !status) return status;
  return settle();
}

// Its index had no room for all dirty blocks: while nobody writes, all are written, and it is complete again.
Status BufferedFile::flush_alone() {
  std::lock_guard lock(io_);
  if (is_parked_ || !retired_) return {};
  if (Status status = flush_live(0, live_bytes_, live_bytes_); !status) return status;
  dirty_.start_over();
  return settle();
}

// Nothing is under way to the file when it is over: an older write would undo what others write from then on.
Status BufferedFile::retire() {
  std::lock_guard turn(flush_turn_);
  std::lock_guard lock(io_);
  if (!retired_) return {};
  if (!mapped_.empty()) return Status::sentence(EBUSY, "it is mapped");
  cache::Client& client = parts_.engine.client();
  (void)parts_.cache.end_flush(client, &begun_);  // what failed is dirty still
  if (Status status = flush_live(0, live_bytes_, live_bytes_); !status) return status;
  if (Status status = settle(); !status) return status;
  file_->stop();
  parts_.cache.close_store(client, *store_);
  retired_ = Status(kRetired, "the file is left to the kernel");
  return {};
}

Status BufferedFile::settle() {
  if (!is_writable()) return {};
  std::lock_guard growth(growth_);         // nobody makes the file longer meanwhile, and then finds it cut
  if (size() == settled_size_) return {};  // who has changed it since has the right to
  if (Status status = file_->settle_size(); !status) return status;
  settled_size_ = size();
  return {};
}

// What is dirty goes around the kernel's memory; where that cannot be had, through it.
void BufferedFile::want_transfers() {
  std::shared_lock lock(io_);
  if (!is_parked_ && retired_ && dirty_.count() > 0) (void)need(Use::kTransfers);
}

Status BufferedFile::hand_over() {
  if (has_much_to_write() || !knows_its_dirty_blocks()) {
    want_transfers();
    return flush();
  }
  file_->write_to_kernel(true);
  Status status = flush();
  file_->write_to_kernel(false);
  return status;
}

// Whatever else changes what a sync makes durable, by the kernel's calls, changes the file's times as well: its size,
// owner, rights, names and attributes, and writes that are not ours.
bool BufferedFile::is_synced(bool whole) {
  std::shared_lock lock(io_);
  if (is_parked_ || !retired_ || !is_clean()) return false;
  std::lock_guard syncing(syncing_);
  if (!synced_.is_known || (whole && !synced_.whole) || synced_.writebacks != dirty_.writebacks())
    return false;
  const auto now = file_->stamp();
  return now && *now == synced_.stamp;
}

BufferedFile::Synced BufferedFile::sync_point(bool whole) {
  Synced point{.is_known = false, .whole = whole, .writebacks = dirty_.writebacks(), .stamp = {}};
  const auto stamp = file_->fd() >= 0 ? file_->stamp() : Status(ENOTSUP, "it is several files");
  if (!stamp) return point;
  std::lock_guard syncing(syncing_);
  times_are_own_ = times_are_own_ || platform::shows_times_of_their_own(file_->fd(), *stamp);
  point.is_known = times_are_own_;
  point.stamp = *stamp;
  return point;
}

Status BufferedFile::sync(bool whole) {
  if (is_synced(whole)) {
    telemetry::count(telemetry::Counter::file_syncs_saved);
    return {};
  }
  want_transfers();
  if (Status status = flush(); !status) return status;
  std::shared_lock lock(io_);
  if (is_parked_) return {};
  if (const int error = sync_error_.load_acquire(); error != 0)
    return Status(error, "a sync of the file has failed before, and what was lost is not known");
  if (open_for_.load_acquire() == 0)
    if (Status status = need(Use::kReads); !status) return status;
  const Synced point = sync_point(whole);
  if (Status status = file_->sync_file(whole); !status) {
    sync_error_.store_release(status.error());
    return status;
  }
  std::lock_guard syncing(syncing_);
  synced_ = point;
  return {};
}

}  // namespace spw::files
