#include "page_cache/mappings.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>

#include "base/units.h"
#include "platform/memory.h"
#include "platform/raw_calls.h"

namespace spw::page_cache {

namespace raw = platform::raw;

namespace {
uintptr_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }
void* pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }
constexpr int kFirstDescriptor = 100;  // above those that programs count on
}  // namespace

Result<std::unique_ptr<Mappings>> Mappings::create(Evictor::Limit limit, Evictor::Lost lost) {
  auto pages = platform::FilePages::open();
  if (!pages) return pages.status();
  return std::unique_ptr<Mappings>(new Mappings(std::move(*pages), std::move(limit), lost));
}

bool Mappings::adopt(const Mapping& mapping) {
  const uint64_t bytes = mapping.end - mapping.begin;
  if (!pages_.fault_singly(mapping.begin, bytes)) return false;
  (void)platform::advise(pointer(mapping.begin), bytes, platform::Advice::kRandom);
  table_.add(mapping);
  if (evictor_.start()) return true;
  table_.remove(mapping.begin, mapping.end);
  return false;
}

void* Mappings::map(void* wanted, size_t bytes, int protection, int flags, int fd, off_t offset) {
  auto file = std::make_shared<const platform::File>(::fcntl(fd, F_DUPFD_CLOEXEC, kFirstDescriptor));
  if (!file->is_open()) return nullptr;
  // To populate it is to read all of it, which need not fit.
  const int private_flags = (flags & ~(MAP_TYPE | MAP_POPULATE)) | MAP_PRIVATE;
  void* mapped = raw::mmap(wanted, bytes, protection, private_flags, fd, offset);
  if (mapped == MAP_FAILED) return nullptr;
  const uintptr_t begin = number(mapped);
  const Mapping mapping{begin, begin + round_up(bytes, kMmuPageBytes), std::move(file),
                        static_cast<uint64_t>(offset), (flags & MAP_TYPE) != MAP_PRIVATE};
  if (adopt(mapping)) return mapped;
  raw::munmap(mapped, bytes);
  return nullptr;
}

std::vector<Mapping> Mappings::release(const void* address, size_t bytes) {
  const uintptr_t begin = round_down(number(address), kMmuPageBytes);
  return table_.remove(begin, round_up(number(address) + bytes, kMmuPageBytes));
}

void Mappings::restore(const Mapping& released, void* address, size_t bytes) {
  Mapping mapping = released;
  mapping.begin = number(address);
  mapping.end = mapping.begin + round_up(bytes, kMmuPageBytes);
  (void)adopt(mapping);  // else it stays the kernel's alone
}

bool Mappings::make_writable(void* address, size_t bytes, int protection) {
  for (const Mapping& part : release(address, bytes)) {
    const size_t part_bytes = part.end - part.begin;
    if (!part.is_shared) continue;
    void* mapped = raw::mmap(pointer(part.begin), part_bytes, protection, MAP_SHARED | MAP_FIXED,
                             part.file->fd(), static_cast<off_t>(part.offset_bytes));
    if (mapped == MAP_FAILED) {
      restore(part, pointer(part.begin), part_bytes);
      return false;
    }
  }
  return raw::mprotect(address, bytes, protection) == 0;
}

size_t Mappings::read_ahead_bytes(size_t bytes) const {
  const Use use = evictor_.use();
  const uint64_t limit = evictor_.limit_pages();
  const uint64_t room = limit - std::min(limit, use.total());
  return std::min<uint64_t>(bytes, std::max(room, limit / 16) * kMmuPageBytes);
}

}  // namespace spw::page_cache
