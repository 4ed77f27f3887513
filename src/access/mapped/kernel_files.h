// Mapped files that the kernel serves at their own addresses, as long as managed space is not watched: what is stored
// to them is in its page cache, which other mappings and calls have at once.
//
// Threads: any (one mutex); end() while nobody else calls. Lifetime: the engine's. Limits: ranges are whole blocks,
// and do not overlap. Errors: of the kernel's memory calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "platform/file.h"

namespace spw::access {

class KernelFiles {
 public:
  struct Range {
    uintptr_t begin = 0, end = 0;
    uint64_t bytes() const { return end - begin; }
  };

  KernelFiles() = default;
  // While nobody calls either.
  KernelFiles(KernelFiles&& other) noexcept : ranges_(std::move(other.ranges_)) {}
  KernelFiles& operator=(KernelFiles&& other) noexcept {
    ranges_ = std::move(other.ranges_);
    return *this;
  }

  // [offset_bytes, + bytes) of the file, to be read and written, in place of what is there. Forked children have it
  // where they have the memory around it.
  Status map(std::byte* address, uint64_t bytes, const platform::File& file, uint64_t offset_bytes);
  // What is there of the range is inaccessible memory again, and whoever mapped it has what was stored. False: nothing
  // of it was a file.
  Result<bool> unmap(std::byte* address, uint64_t bytes);
  // Makes durable what was stored to files there.
  Status sync(const std::byte* address, uint64_t bytes);
  std::vector<Range> ranges() const;
  // As unmap() of all.
  Status end();

 private:
  std::vector<Range> parts_of(uintptr_t begin, uintptr_t end) const;
  void forget(Range part);

  mutable std::mutex mutex_;
  std::map<uintptr_t, uintptr_t> ranges_;  // begin, end
};

}  // namespace spw::access
