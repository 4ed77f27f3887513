#include "store/sparse/segment_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace spw::store {

namespace {

constexpr int kVersion = 1;
constexpr const char* kMetadataName = "/spillway-sparse";
constexpr const char* kSegmentPrefix = "segment-";

std::string text_of(const Shape& shape) {
  return "spillway-sparse " + std::to_string(kVersion) + "\nsegment_bytes " +
         std::to_string(shape.segment_bytes) + "\nsize_bytes " + std::to_string(shape.size_bytes) + "\n";
}

Shape with_defaults(Shape shape) {
  if (shape.segment_bytes == 0)
    shape.segment_bytes =
        std::max(kSegmentBytesDefault, std::bit_ceil(shape.size_bytes / kSegmentCountDefault));
  return shape;
}

// Where the name is a pipe's, open(2) would wait for somebody to write to it; of a file it is nothing else. A symbolic
// link (ELOOP) would have the store write to a file elsewhere.
Result<platform::File> open_unwaiting(const std::string& path) {
  return platform::open_file(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
}

// Why a shape cannot be; "" if it can.
std::string fault_of(const Shape& shape) {
  if (shape.segment_bytes == 0 || shape.segment_bytes % kSegmentGrainBytes != 0)
    return "segment has to be a multiple of " + format_size(kSegmentGrainBytes);
  if (shape.size_bytes == 0 || shape.size_bytes % kMmuPageBytes != 0)
    return "size has to be a multiple of " + format_size(kMmuPageBytes);
  if (shape.segment_bytes > kSparseBytesMax || shape.size_bytes > kSparseBytesMax)
    return "size and segment can be " + format_size(kSparseBytesMax) + " at most";
  if (shape.segment_count() > kSegmentCountMax)
    return "that would be " + std::to_string(shape.segment_count()) + " segments, and at most " +
           std::to_string(kSegmentCountMax) + " are possible; choose a larger segment";
  return "";
}

}  // namespace

Status SegmentDirectory::refused(int error, const std::string& why) const {
  return Status::sentence(error, "the sparse store in " + path_ + ": " + why);
}

Result<SegmentDirectory> SegmentDirectory::open(const std::string& path, Access access, Shape wanted) {
  SegmentDirectory directory;
  directory.path_ = path;
  directory.access_ = access;
  if (Status status = directory.prepare(wanted); !status) return status;
  return directory;
}

Result<Shape> SegmentDirectory::shape_of(const std::string& path) {
  SegmentDirectory directory;
  directory.path_ = path;
  auto file = open_unwaiting(path + kMetadataName);
  if (file.status().error() == ENOENT) return directory.refused(ENOENT, "there is none");
  if (!file) return file.status();
  directory.metadata_ = std::move(*file);
  if (Status status = directory.read_metadata(); !status) return status;
  return directory.shape_;
}

Status SegmentDirectory::prepare(Shape wanted) {
  bool may_create = access_ == Access::kCreate || access_ == Access::kOpenOrCreate;
  std::error_code error;
  if (may_create && !std::filesystem::create_directory(path_, error) && error)
    return refused(error.value(),
                   std::string("its directory cannot be made: ") + std::strerror(error.value()));
  auto opened = platform::open_file(path_, O_RDONLY | O_DIRECTORY);
  if (!opened)
    return refused(opened.status().error(),
                   std::string("its directory cannot be opened: ") + std::strerror(opened.status().error()));
  directory_ = std::move(*opened);
  if (access_ == Access::kSpill) {
    shape_ = with_defaults(wanted);
    std::string fault = fault_of(shape_);
    return fault.empty() ? Status::ok() : refused(EINVAL, fault);
  }
  bool exists = std::filesystem::exists(path_ + kMetadataName, error);
  if (exists && access_ == Access::kCreate)
    return refused(EEXIST, "there is one already; open it with mode=open, or remove the directory");
  if (!exists && !may_create)
    return refused(ENOENT, "there is none; create it with size=SIZE and mode=create");
  if (!exists)
    if (Status status = create_metadata(with_defaults(wanted)); !status) return status;
  return open_metadata(wanted);
}

// Whole or not at all: written under another name first. Of two who create at the same time, one gets EEXIST and opens
// the other's, which it then compares with what it wanted.
Status SegmentDirectory::create_metadata(Shape wanted) const {
  if (wanted.size_bytes == 0) return refused(EINVAL, "there is none, and to create it size=SIZE is needed");
  if (std::string fault = fault_of(wanted); !fault.empty()) return refused(EINVAL, fault);
  std::error_code error;
  using Entries = std::filesystem::directory_iterator;
  for (Entries entry(path_, error); !error && entry != Entries(); entry.increment(error))
    if (entry->path().filename().string().starts_with(kSegmentPrefix))
      return refused(EEXIST, "there are segments but no " + std::string(kMetadataName + 1) +
                                 " that says how large they are; restore that file, or remove the directory");
  std::string temporary = path_ + "/.spillway-sparse." + std::to_string(::getpid());
  std::string text = text_of(wanted);
  auto file = platform::open_file(temporary, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW);
  if (!file) return file.status();
  iovec segment{text.data(), text.size()};
  int64_t written = platform::write_at(file->fd(), &segment, 1, 0);
  int64_t synced = written == static_cast<int64_t>(text.size()) ? platform::sync_data(file->fd()) : written;
  std::filesystem::path to(path_ + kMetadataName);
  if (synced == 0) std::filesystem::create_hard_link(temporary, to, error);
  std::error_code ignored;
  std::filesystem::remove(temporary, ignored);
  if (synced != 0)
    return refused(synced < 0 ? static_cast<int>(-synced) : ENOSPC, "its metadata file cannot be written");
  if (error && error.value() != EEXIST)
    return refused(error.value(), "its metadata file cannot be made: " + error.message());
  if (error && access_ == Access::kCreate) return refused(EEXIST, "somebody else has just made one");
  return sync_names();
}

Status SegmentDirectory::open_metadata(Shape wanted) {
  auto file = open_unwaiting(path_ + kMetadataName);
  if (!file) return file.status();
  metadata_ = std::move(*file);
  if (Status status = lock(); !status) return status;
  if (Status status = read_metadata(); !status) return status;
  if ((wanted.segment_bytes != 0 && wanted.segment_bytes != shape_.segment_bytes) ||
      (wanted.size_bytes != 0 && wanted.size_bytes != shape_.size_bytes))
    return refused(EINVAL, "it was made with segment=" + std::to_string(shape_.segment_bytes) +
                               " and size=" + std::to_string(shape_.size_bytes) +
                               ", which is not what is asked for; leave both out to use it as it is");
  return check_segment_files();
}

// Into shape_.
Status SegmentDirectory::read_metadata() {
  constexpr size_t kTextBytesMax = 256;
  char text[kTextBytesMax + 1] = {};
  iovec segment{text, kTextBytesMax};
  int64_t bytes = platform::read_at(metadata_.fd(), &segment, 1, 0);
  if (bytes < 0) return refused(static_cast<int>(-bytes), "its metadata file cannot be read");
  int version = 0;
  int fields = std::sscanf(text, "spillway-sparse %d segment_bytes %" SCNu64 " size_bytes %" SCNu64, &version,
                           &shape_.segment_bytes, &shape_.size_bytes);
  if (fields >= 1 && version != kVersion)
    return refused(EINVAL, "it is of version " + std::to_string(version) +
                               ", and this Spillway reads version " + std::to_string(kVersion) +
                               "; use the Spillway that made it");
  if (fields != 3 || text_of(shape_) != text || !fault_of(shape_).empty())
    return refused(EUCLEAN, "its file " + std::string(kMetadataName + 1) +
                                " is damaged; restore it, or remove the directory");
  return Status::ok();
}

Status SegmentDirectory::lock() const {
  Status status =
      platform::lock_file(metadata_, is_read_only() ? platform::Lock::kShared : platform::Lock::kExclusive);
  if (status.error() == EWOULDBLOCK)
    return refused(EBUSY, "another process or store has it open; wait for its end, or let all use mode=read");
  return status;
}

// A segment of another length than it should have was cut or replaced. Length 0 is a segment whose maker was killed
// before it was given its size: nothing was written to it.
Status SegmentDirectory::check_segment_files() const {
  std::error_code error;
  using Entries = std::filesystem::directory_iterator;
  for (Entries entry(path_, error); !error && entry != Entries(); entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (!name.starts_with(kSegmentPrefix)) continue;
    if (entry->is_symlink(error))
      return refused(EUCLEAN, name + " is a symbolic link, which is not followed; put the file itself there");
    if (!entry->is_regular_file(error))
      return refused(EUCLEAN, name + " is no file; restore it from a copy, or remove it");
    uint64_t bytes = entry->file_size(error);
    if (error || bytes == 0 || bytes == shape_.segment_bytes) continue;
    return refused(EUCLEAN, name + " has " + std::to_string(bytes) + " bytes instead of " +
                                std::to_string(shape_.segment_bytes) + "; restore it from a copy");
  }
  return error ? refused(error.value(), "its directory cannot be listed: " + error.message()) : Status::ok();
}

std::string SegmentDirectory::segment_path(uint64_t segment) const {
  char name[32];
  std::snprintf(name, sizeof name, "/%s%06" PRIu64, kSegmentPrefix, segment);
  return path_ + name;
}

Status SegmentDirectory::sync_names() const {
  const int64_t error = platform::sync_all(directory_.fd());
  return error < 0 ? Status(static_cast<int>(-error), "cannot sync the directory " + path_) : Status::ok();
}

}  // namespace spw::store
