#include "store/checked/page_sums.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"

namespace spw::store {

namespace {

constexpr uint64_t kLeafBytes = PageSums::kLeafPages * sizeof(uint32_t);

// Calls page(page's number, its contents) for each of what is transferred.
template <class Visit>
bool for_each_page(uint64_t offset_bytes, std::span<const iovec> segments, Visit visit) {
  uint64_t page = offset_bytes / PageSums::kPageBytes;
  for (const iovec& segment : segments)
    for (size_t at = 0; at < segment.iov_len; at += PageSums::kPageBytes)
      if (!visit(page++, static_cast<const std::byte*>(segment.iov_base) + at)) return false;
  return true;
}

}  // namespace

Status PageSums::allocate(uint64_t store_bytes) {
  checksum_ = checksum_function();
  SPW_CHECK(::syscall(SYS_getrandom, secret_.bytes, sizeof secret_.bytes, 0) == sizeof secret_.bytes);
  pages_ = store_bytes / kPageBytes;
  leaves_ = pages_ / kLeafPages + 1;
  auto memory = platform::map_anonymous(round_up(leaves_ * sizeof(*root_), kMmuPageBytes));
  if (!memory) return memory.status();
  root_memory_ = std::move(*memory);
  root_ = reinterpret_cast<Atomic<Entry*>*>(root_memory_.data());
  return {};
}

PageSums::~PageSums() {
  for (uint64_t i = 0; i < leaves_; ++i)
    if (Entry* const leaf = root_[i].load_relaxed()) ::munmap(static_cast<void*>(leaf), kLeafBytes);
}

// Of two threads that make one at the same time, one's goes.
PageSums::Entry* PageSums::leaf(uint64_t index) {
  SPW_CHECK(index < leaves_);
  if (Entry* const there = root_[index].load_acquire()) return there;
  auto made = platform::map_anonymous(kLeafBytes);
  SPW_CHECK(made);
  auto* const entries = reinterpret_cast<Entry*>(made->data());
  Entry* none = nullptr;
  if (!root_[index].cas_strong_acq_rel(none, entries)) return root_[index].load_acquire();
  (void)made->release();
  return entries;
}

uint32_t PageSums::sum(const std::byte* page) const { return std::max(checksum_(page, secret_), 1u); }

void PageSums::note(uint64_t offset_bytes, std::span<const iovec> segments) {
  for_each_page(offset_bytes, segments, [&](uint64_t page, const std::byte* contents) {
    if (page < pages_) leaf(page / kLeafPages)[page % kLeafPages].store_relaxed(sum(contents));
    return page < pages_;
  });
}

void PageSums::forget(uint64_t offset_bytes, uint64_t bytes) {
  const uint64_t end = std::min((offset_bytes + bytes) / kPageBytes, pages_);
  for (uint64_t page = offset_bytes / kPageBytes; page < end; ++page) {
    Entry* const entries = root_[page / kLeafPages].load_acquire();
    if (entries == nullptr) {
      page |= kLeafPages - 1;  // on to the next leaf
      continue;
    }
    // Not to take memory for what is zero anyway.
    Entry& entry = entries[page % kLeafPages];
    if (entry.load_relaxed() != 0) entry.store_relaxed(0);
  }
}

bool PageSums::are_as_written(uint64_t offset_bytes, std::span<const iovec> segments) const {
  return for_each_page(offset_bytes, segments, [&](uint64_t page, const std::byte* contents) {
    const Entry* const entries = page < pages_ ? root_[page / kLeafPages].load_acquire() : nullptr;
    const uint32_t known = entries == nullptr ? 0 : entries[page % kLeafPages].load_relaxed();
    return known == 0 || known == sum(contents);
  });
}

}  // namespace spw::store
