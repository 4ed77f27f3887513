// The segments of a sparse store: which exist, which are open, and who is using them.
//
// A segment's word:   | users (30 bits) | open | exists |
//
//   from -> to                     who                  operation, order
//   open, n users -> n+1           use()                CAS, acquire: pairs with the release that published the open file
//   anything -> open, exists, 1+   use() under mutex_   store, release
//   n users -> n-1                 release()            fetch_sub, release: pairs with the acquire of who closes
//   open, 0 users -> not open      close_one() and      CAS, acquire-release, under mutex_; then the file is closed
//                                  remove(), the latter clears `exists` too
//
// Invariants: users > 0 => open;  open => exists;  a segment's file is open <=> `open`, but while its word is changed under mutex_.
//   With names, open segments <= kOpenSegmentsMax, but while more are in use at once; without names, exists <=> open.
// Threads: any, all functions. Lifetime: nothing is in use when it is destroyed.
// Limits: kOpenSegmentsMax descriptors; a store without names has no more segments than that.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/atomic.h"
#include "platform/file.h"
#include "store/space.h"
#include "store/sparse/segment_directory.h"

namespace spw::store {

inline constexpr uint64_t kOpenSegmentsMax = 256;

class Segments {
 public:
  Segments(SegmentDirectory directory, platform::Direct direct);

  enum class Missing : uint8_t { kLeave, kCreate };
  // The segment's descriptor, kept open until release(); -1, with
  // nothing to release, when it does not exist and is not to be made.
  Result<int> use(uint64_t segment, Missing missing);
  // `written`: it may have been; the next sync() reaches it.
  void release(uint64_t segment, bool written);

  // Allocates space in a segment, which it creates.
  Status reserve(uint64_t segment, uint64_t offset_bytes, uint64_t bytes);
  // Gives the space of [offset, offset + bytes) of a segment back: the
  // whole segment's file if it can, else a hole. 0 or a negative errno.
  int64_t discard(uint64_t segment, uint64_t offset_bytes, uint64_t bytes);
  // What has been written to segments, and their names, survives the machine from here on. 0 or a negative errno.
  int64_t sync();

  const SegmentDirectory& directory() const { return directory_; }
  uint64_t existing() const { return existing_.load_relaxed(); }
  uint64_t open() const { return open_count_.load_relaxed(); }

 private:
  struct Segment {
    Atomic<uint32_t> word{0};
    Atomic<bool> written{false};  // since it was last synced
    platform::File file;
    std::optional<SpaceReservations> space;  // made with the first open
  };

  Result<int> use_slowly(uint64_t index, Missing missing);
  Result<platform::File> open_file(uint64_t index, bool create) const;
  Status give_size(const platform::File& file, uint64_t index) const;
  void close_one();
  bool remove(uint64_t index);
  int64_t punch(Segment& segment, uint64_t offset_bytes, uint64_t bytes) const;

  const SegmentDirectory directory_;
  const platform::Direct direct_;
  const uint64_t segment_bytes_;
  const uint64_t count_;
  std::unique_ptr<Segment[]> segments_;

  std::mutex mutex_;                // opening, closing, removing
  std::vector<uint32_t> open_;      // under mutex_: segments that are open
  size_t hand_ = 0;                 // under mutex_: where the search for one to close goes on
  Atomic<uint64_t> open_count_{0};  // open_.size()
  Atomic<uint64_t> existing_{0};
  Atomic<bool> names_changed_{false};  // since the directory was last synced
  std::mutex sync_mutex_;              // a sync() ends after those that cleared a `written` before it
};

}  // namespace spw::store
