// The directory of a sparse store: what it is called, how large it is, where its segments lie, and who may use it now.
//
//     DIR/spillway-sparse    three lines: "spillway-sparse VERSION", "segment_bytes N", "size_bytes N"
//     DIR/segment-NNNNNN     bytes [N * segment_bytes, (N + 1) * segment_bytes) of the store; no file: zeros
//
// The first file is written once, whole and durable before anything else; it is locked (flock) while the directory is
// in use: exclusively, or shared by those who only read.
// With Access::kSpill the directory has no such files: segments have no names there and are gone with the process.
//
// Invariants: segment_bytes is a multiple of kSegmentGrainBytes, size_bytes of kMmuPageBytes;
//   segment_count = ceil(size_bytes / segment_bytes) in [1, kSegmentCountMax]; no offset is above kSparseBytesMax.
// Threads: const members any. Lifetime: the lock is held as long as the object lives.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/units.h"
#include "platform/file.h"

namespace spw::store {

inline constexpr uint64_t kSegmentGrainBytes = 64 * kKiB;
inline constexpr uint64_t kSegmentCountMax = uint64_t{1} << 16;
// Of the store, and of a segment: eight times what a process can address, and a segment's reservations (store/space.h)
// take 8 MiB then.
inline constexpr uint64_t kSparseBytesMax = uint64_t{1} << 50;
// What a segment's size is when nobody chose one: at least this, and so that there are at most kSegmentCountDefault.
inline constexpr uint64_t kSegmentBytesDefault = kGiB;
inline constexpr uint64_t kSegmentCountDefault = 256;

enum class Access : uint8_t {
  kCreate,        // there must be none yet
  kOpen,          // there must be one
  kOpenOrCreate,  // open it, or create it where there is none
  kRead,          // open it, for reading only
  kSpill,         // a new one without names; the directory must exist
};

// 0: not chosen.
struct Shape {
  uint64_t segment_bytes = 0;
  uint64_t size_bytes = 0;

  uint64_t segment_count() const {
    return size_bytes / segment_bytes + (size_bytes % segment_bytes != 0 ? 1 : 0);
  }
};

class SegmentDirectory {
 public:
  // Errors, each a sentence with what to do: EINVAL for a shape that cannot be or is
  // not that of the store there; ENOENT, EEXIST; EBUSY while another has it; EUCLEAN
  // for a metadata file or a segment that is damaged; else what the system said.
  static Result<SegmentDirectory> open(const std::string& path, Access access, Shape wanted);
  // What the store in `path` was made with; nothing is locked, so it may be in use. Errors as open()'s.
  static Result<Shape> shape_of(const std::string& path);
  SegmentDirectory() = default;

  const Shape& shape() const { return shape_; }
  const std::string& path() const { return path_; }
  bool is_nameless() const { return access_ == Access::kSpill; }
  bool is_read_only() const { return access_ == Access::kRead; }
  std::string segment_path(uint64_t segment) const;
  // Makes created and removed names durable.
  Status sync_names() const;

 private:
  Status prepare(Shape wanted);
  Status create_metadata(Shape wanted) const;
  Status open_metadata(Shape wanted);
  Status read_metadata();
  Status lock() const;
  Status check_segment_files() const;
  Status refused(int error, const std::string& why) const;

  std::string path_;
  Access access_ = Access::kOpen;
  Shape shape_;
  platform::File directory_;
  platform::File metadata_;
};

}  // namespace spw::store
