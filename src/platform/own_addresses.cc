#include "platform/own_addresses.h"

#include <sys/resource.h>

#include <algorithm>
#include <bit>

#include "platform/raw_calls.h"

namespace spw::platform {

namespace {

constexpr int kReserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

constinit OwnAddresses the_addresses;

uint64_t pages_of(uint64_t bytes) { return round_up(bytes, kMmuPageBytes) / kMmuPageBytes; }

}  // namespace

OwnAddresses& own_addresses() { return the_addresses; }

void OwnAddresses::reserve() {
  rlimit limit{};
  if (base_.load_acquire() != 0 || ::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY)
    return;
  void* got = raw::mmap(nullptr, kBytes, PROT_NONE, kReserved, -1, 0);
  if (got == MAP_FAILED) return;
  if (raw::mprotect(got, kTableBytes, PROT_READ | PROT_WRITE) != 0) {
    raw::munmap(got, kBytes);
    return;
  }
  base_.store_release(reinterpret_cast<uintptr_t>(got));
  (void)claim(0, kTableBytes / kMmuPageBytes);
}

uint64_t OwnAddresses::mask(uint64_t word, uint64_t page, uint64_t end) {
  const uint64_t begin = word * kBits;
  uint64_t bits = ~uint64_t{0};
  if (page > begin) bits &= ~uint64_t{0} << (page - begin);
  if (end < begin + kBits) bits &= ~(~uint64_t{0} << (end - begin));
  return bits;
}

uint64_t OwnAddresses::find(uint64_t page, uint64_t end, bool is_taken) const {
  for (uint64_t index = page / kBits; index * kBits < end; ++index) {
    const uint64_t bits = word(index).load_relaxed();
    const uint64_t found = (is_taken ? bits : ~bits) & mask(index, page, end);
    if (found != 0) return index * kBits + static_cast<uint64_t>(std::countr_zero(found));
  }
  return end;
}

bool OwnAddresses::claim(uint64_t page, uint64_t pages) {
  const uint64_t end = page + pages;
  for (uint64_t index = page / kBits; index * kBits < end; ++index) {
    const uint64_t wanted = mask(index, page, end);
    const uint64_t others = word(index).fetch_or_acq_rel(wanted) & wanted;
    if (others == 0) continue;
    word(index).fetch_and_acq_rel(~(wanted & ~others));
    if (index * kBits > page) clear(page, index * kBits - page);
    return false;
  }
  return true;
}

void OwnAddresses::clear(uint64_t page, uint64_t pages) {
  const uint64_t end = page + pages;
  for (uint64_t index = page / kBits; index * kBits < end; ++index)
    word(index).fetch_and_acq_rel(~mask(index, page, end));
}

uintptr_t OwnAddresses::take(uint64_t bytes, uint64_t alignment_bytes) {
  if (bytes == 0 || bytes > kMappingBytesMax) return 0;
  const uintptr_t base = base_.load_acquire();
  if (base == 0) return 0;
  const uint64_t pages = pages_of(bytes);
  const auto aligned = [&](uint64_t page) {
    return (round_up(base + page * kMmuPageBytes, alignment_bytes) - base) / kMmuPageBytes;
  };
  const uint64_t begin = find(lowest_.load_relaxed(), kPages, false);
  for (uint64_t page = aligned(begin); page + pages <= kPages;) {
    const uint64_t taken = find(page, page + pages, true);
    if (taken == page + pages && claim(page, pages)) {
      if (page == begin) lowest_.store_relaxed(page + pages);
      return base + page * kMmuPageBytes;
    }
    page = aligned(find(taken, kPages, false));
  }
  return 0;
}

bool OwnAddresses::has_taken(uintptr_t address) const {
  const uintptr_t base = base_.load_acquire();
  return base != 0 && address >= base && address - base < kBytes;
}

bool OwnAddresses::give_back(uintptr_t address, uint64_t bytes) {
  if (!has_taken(address)) return false;
  void* got = raw::mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE, kReserved | MAP_FIXED, -1, 0);
  if (got == MAP_FAILED)
    return false;  // unmapped, its addresses are the kernel's to give and stay taken here
  clear_from(address, bytes);
  return true;
}

void OwnAddresses::give_back_unmapped(uintptr_t address, uint64_t bytes) {
  if (!has_taken(address)) return;
  void* const wanted = reinterpret_cast<void*>(address);
  void* got = raw::mmap(wanted, bytes, PROT_NONE, kReserved | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == wanted) return clear_from(address, bytes);
  if (got != MAP_FAILED) raw::munmap(got, bytes);  // before Linux 4.17
}

void OwnAddresses::clear_from(uintptr_t address, uint64_t bytes) {
  const uint64_t page = (address - base_.load_acquire()) / kMmuPageBytes;
  clear(page, pages_of(bytes));
  if (page < lowest_.load_relaxed()) lowest_.store_relaxed(page);
}

}  // namespace spw::platform
