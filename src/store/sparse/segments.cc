#include "store/sparse/segments.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/check.h"

namespace spw::store {

namespace {

constexpr uint32_t kExists = 1;
constexpr uint32_t kOpen = 2;
constexpr uint32_t kOneUser = 4;

bool is_unused(uint32_t word) { return word < kOneUser; }

}  // namespace

Segments::Segments(SegmentDirectory directory, platform::Direct direct)
    : directory_(std::move(directory)),
      direct_(direct),
      segment_bytes_(directory_.shape().segment_bytes),
      count_(directory_.shape().segment_count()),
      segments_(std::make_unique<Segment[]>(count_)) {
  if (directory_.is_nameless()) return;
  for (uint64_t i = 0; i < count_; ++i) {
    std::error_code error;
    if (!std::filesystem::exists(directory_.segment_path(i), error)) continue;
    segments_[i].word.store_relaxed(kExists);
    existing_.fetch_add_relaxed(1);
  }
}

Result<int> Segments::use(uint64_t index, Missing missing) {
  SPW_DCHECK(index < count_);
  Segment& segment = segments_[index];
  // Acquire: pairs with the release in use_slowly(), so that the open file is seen.
  uint32_t word = segment.word.load_acquire();
  while (word & kOpen)
    if (segment.word.cas_weak_acquire(word, word + kOneUser)) return segment.file.fd();
  if (!(word & kExists) && missing == Missing::kLeave) return -1;
  return use_slowly(index, missing);
}

Result<int> Segments::use_slowly(uint64_t index, Missing missing) {
  std::lock_guard lock(mutex_);
  Segment& segment = segments_[index];
  uint32_t word = segment.word.load_acquire();
  while (word & kOpen)  // somebody else has opened it meanwhile
    if (segment.word.cas_weak_acquire(word, word + kOneUser)) return segment.file.fd();
  bool create = !(word & kExists);
  if (create && missing == Missing::kLeave) return -1;
  if (open_.size() >= kOpenSegmentsMax && !directory_.is_nameless()) close_one();
  auto file = open_file(index, create);
  if (!file) return file.status();
  segment.file = std::move(*file);
  if (!segment.space) segment.space.emplace(segment.file, segment_bytes_);
  open_.push_back(static_cast<uint32_t>(index));
  open_count_.store_relaxed(open_.size());
  if (create) {
    existing_.fetch_add_relaxed(1);
    names_changed_.store_release(true);
  }
  segment.word.store_release(kExists | kOpen | kOneUser);
  return segment.file.fd();
}

// The last of a file's three steps to existence gives it its size, so a file that has its size is whole.
Result<platform::File> Segments::open_file(uint64_t index, bool create) const {
  if (directory_.is_nameless()) {
    auto file = platform::open_spill_file(directory_.path());
    if (!file) return file.status();
    auto opened = platform::reopen_file(file->fd(), direct_);
    if (!opened) return opened.status();
    if (Status status = platform::set_file_size(opened->file, segment_bytes_); !status) return status;
    return std::move(opened->file);
  }
  // Somebody may have put a link there since the directory was looked through.
  int flags = (directory_.is_read_only() ? O_RDONLY : O_RDWR) | O_NOFOLLOW;
  if (create) flags |= O_CREAT;
  if (direct_ == platform::Direct::kIfPossible) flags |= O_DIRECT;
  auto file = platform::open_file(directory_.segment_path(index), flags);
  if (!file) return file.status();
  if (Status status = give_size(*file, index); !status) return status;
  return std::move(*file);
}

Status Segments::give_size(const platform::File& file, uint64_t index) const {
  auto bytes = platform::file_size(file);
  if (!bytes) return bytes.status();
  if (*bytes == segment_bytes_) return Status::ok();
  if (*bytes == 0) return platform::set_file_size(file, segment_bytes_);
  return Status::sentence(EUCLEAN, directory_.segment_path(index) + " has changed its size");
}

// Makes room for another descriptor, unless all segments are in use.
void Segments::close_one() {
  for (size_t looked = 0; looked < open_.size(); ++looked) {
    hand_ = (hand_ + 1) % open_.size();
    Segment& segment = segments_[open_[hand_]];
    uint32_t unused = kExists | kOpen;
    // Acquire pairs with the release of the last user: its transfer is over before the file is closed.
    if (!segment.word.cas_strong_acq_rel(unused, kExists)) continue;
    segment.file = platform::File();
    open_[hand_] = open_.back();
    open_.pop_back();
    return;
  }
}

void Segments::release(uint64_t index, bool written) {
  Segment& segment = segments_[index];
  // Before the completion is seen: a sync that is asked for after it finds the mark.
  if (written) segment.written.store_release(true);
  uint32_t before = segment.word.fetch_sub_acq_rel(kOneUser);
  SPW_DCHECK(!is_unused(before));
}

Status Segments::reserve(uint64_t index, uint64_t offset_bytes, uint64_t bytes) {
  auto fd = use(index, Missing::kCreate);
  if (!fd) return fd.status();
  Status status = segments_[index].space->reserve(offset_bytes, bytes);
  release(index, false);
  return status;
}

// Removes a segment that nobody uses at the moment.
bool Segments::remove(uint64_t index) {
  std::lock_guard lock(mutex_);
  Segment& segment = segments_[index];
  uint32_t word = segment.word.load_acquire();
  if (!is_unused(word) || !segment.word.cas_strong_acq_rel(word, 0)) return false;
  if (!(word & kExists)) return true;
  if (!directory_.is_nameless() && ::unlink(directory_.segment_path(index).c_str()) != 0) {
    segment.word.store_release(word);
    return false;
  }
  segment.file = platform::File();
  segment.space.reset();
  segment.written.store_relaxed(false);
  std::erase(open_, static_cast<uint32_t>(index));
  open_count_.store_relaxed(open_.size());
  existing_.fetch_sub_relaxed(1);
  names_changed_.store_release(true);
  return true;
}

int64_t Segments::discard(uint64_t index, uint64_t offset_bytes, uint64_t bytes) {
  if (directory_.is_read_only()) return -EBADF;
  if (bytes == segment_bytes_ && remove(index)) return 0;
  auto fd = use(index, Missing::kLeave);
  if (!fd) return -fd.status().error();
  if (*fd < 0) return 0;
  int64_t result = punch(segments_[index], offset_bytes, bytes);
  release(index, true);
  return result;
}

// A hole, or zeros where the filesystem has no holes.
int64_t Segments::punch(Segment& segment, uint64_t offset_bytes, uint64_t bytes) const {
  int64_t result = platform::punch_hole(segment.file.fd(), offset_bytes, bytes);
  if (result == 0) segment.space->forget(offset_bytes, bytes);
  if (result != -EOPNOTSUPP && result != -ENODEV) return result;
  constexpr uint64_t kZerosBytes = 64 * kKiB;
  alignas(kMmuPageBytes) static constinit std::byte zeros[kZerosBytes] = {};
  for (uint64_t done = 0; done < bytes; done += static_cast<uint64_t>(result)) {
    iovec all{zeros, std::min(bytes - done, kZerosBytes)};
    result = platform::write_at(segment.file.fd(), &all, 1, offset_bytes + done);
    if (result <= 0) return result == 0 ? -EIO : result;
  }
  return 0;
}

int64_t Segments::sync() {
  std::lock_guard lock(sync_mutex_);
  for (uint64_t index = 0; index < count_; ++index) {
    Segment& segment = segments_[index];
    // Acquire: pairs with release(); what was written before the mark is in the file now.
    if (!segment.written.load_acquire() || !segment.written.exchange_acq_rel(false)) continue;
    auto fd = use(index, Missing::kLeave);
    int64_t result = fd ? (*fd < 0 ? 0 : platform::sync_data(*fd)) : -fd.status().error();
    if (fd && *fd >= 0) release(index, false);
    if (result == 0) continue;
    segment.written.store_release(true);
    return result;
  }
  if (!names_changed_.exchange_acq_rel(false)) return 0;
  Status status = directory_.sync_names();
  if (!status) names_changed_.store_release(true);
  return -status.error();
}

}  // namespace spw::store
