#include "libc/map/reservations.h"

#include <link.h>

#include <algorithm>

#include "base/units.h"

namespace spw::libc {

namespace {

constexpr uint64_t kNearBytes = 2 * kGiB;  // as far as a jump reaches
constexpr uintptr_t kMarkedAddressMin = uintptr_t{1} << 42;
constexpr size_t kMarkedBytesMin = kGiB;
// One without a hint is worth managing when it could hold this share of the cap, and is more than a ring buffer.
constexpr uint64_t kCapShare = 8;
constexpr uint64_t kRingBytesMax = 32 * kMiB;

struct Range {
  uintptr_t begin, end;
};

bool is_near_code(Range range) {
  const auto is_near = [](dl_phdr_info* object, size_t, void* data) {
    const Range wanted = *static_cast<Range*>(data);
    for (const ElfW(Phdr)* part = object->dlpi_phdr; part != object->dlpi_phdr + object->dlpi_phnum; ++part) {
      if (part->p_type != PT_LOAD || (part->p_flags & PF_X) == 0) continue;
      const uintptr_t begin = object->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;
      if (wanted.end + kNearBytes > begin && wanted.begin < end + kNearBytes) return 1;
    }
    return 0;
  };
  return dl_iterate_phdr(is_near, &range) != 0;
}

}  // namespace

bool is_reservation_managed(const void* hint, size_t bytes, uint64_t memory_bytes) {
  if (hint == nullptr) return bytes > kRingBytesMax && bytes >= memory_bytes / kCapShare;
  const auto address = reinterpret_cast<uintptr_t>(hint);
  if (address >= kMarkedAddressMin && bytes >= kMarkedBytesMin) return false;
  return !is_near_code({address, address + bytes});
}

}  // namespace spw::libc
