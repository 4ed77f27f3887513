#include "access/mapped/kernel_files.h"

#include <algorithm>
#include <iterator>

#include "platform/memory.h"

namespace spw::access {

namespace {

uintptr_t number(const std::byte* address) { return reinterpret_cast<uintptr_t>(address); }

// As the rest of managed space that is not live.
Status make_inaccessible(const KernelFiles::Range& range) {
  auto* const address = reinterpret_cast<std::byte*>(range.begin);
  Status status = platform::release_at(address, range.bytes());
  for (const auto advice : {platform::Advice::kDontFork, platform::Advice::kDontDump})
    if (status) status = platform::advise(address, range.bytes(), advice);
  return status;
}

}  // namespace

Status KernelFiles::map(std::byte* address, uint64_t bytes, const platform::File& file,
                        uint64_t offset_bytes) {
  std::lock_guard lock(mutex_);
  Status status =
      platform::map_file_unforked_at(address, file, offset_bytes, bytes, platform::Protection::kReadWrite);
  if (status) ranges_[number(address)] = number(address) + bytes;
  return status;
}

// What of [begin, end) is mapped.
std::vector<KernelFiles::Range> KernelFiles::parts_of(uintptr_t begin, uintptr_t end) const {
  std::vector<Range> parts;
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin()) --at;
  for (; at != ranges_.end() && at->first < end; ++at) {
    const Range part{std::max(begin, at->first), std::min(end, at->second)};
    if (part.begin < part.end) parts.push_back(part);
  }
  return parts;
}

void KernelFiles::forget(Range part) {
  const auto at = std::prev(ranges_.upper_bound(part.begin));
  const auto [begin, end] = *at;
  ranges_.erase(at);
  if (begin < part.begin) ranges_[begin] = part.begin;
  if (part.end < end) ranges_[part.end] = end;
}

Result<bool> KernelFiles::unmap(std::byte* address, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const std::vector<Range> parts = parts_of(number(address), number(address) + bytes);
  for (const Range& part : parts) {
    if (Status status = make_inaccessible(part); !status) return status;
    forget(part);
  }
  return !parts.empty();
}

Status KernelFiles::sync(const std::byte* address, uint64_t bytes) {
  std::vector<Range> parts;
  {
    std::lock_guard lock(mutex_);
    parts = parts_of(number(address), number(address) + bytes);
  }
  for (const Range& part : parts)
    if (Status status = platform::sync_mapped(reinterpret_cast<void*>(part.begin), part.bytes()); !status)
      return status;
  return {};
}

std::vector<KernelFiles::Range> KernelFiles::ranges() const {
  std::lock_guard lock(mutex_);
  return parts_of(0, UINTPTR_MAX);
}

Status KernelFiles::end() {
  std::lock_guard lock(mutex_);
  for (; !ranges_.empty(); ranges_.erase(ranges_.begin()))
    if (Status status = make_inaccessible({ranges_.begin()->first, ranges_.begin()->second}); !status)
      return status;
  return {};
}

}  // namespace spw::access
