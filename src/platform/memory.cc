#include "platform/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/units.h"
#include "platform/file.h"
#include "platform/own_addresses.h"
#include "platform/proc_text.h"
#include "platform/raw_calls.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace spw::platform {

namespace {

Status failed(const char* what, uint64_t bytes) {
  return Status(errno, std::string("cannot ") + what + " " + format_size(bytes) + " of address space");
}

int flags_of(Protection protection) {
  switch (protection) {
    case Protection::kNone:
      return PROT_NONE;
    case Protection::kRead:
      return PROT_READ;
    case Protection::kReadWrite:
      return PROT_READ | PROT_WRITE;
  }
  return PROT_NONE;
}

int flag_of(Advice advice) {
  switch (advice) {
    case Advice::kDontNeed:
      return MADV_DONTNEED;
    case Advice::kRemove:
      return MADV_REMOVE;
    case Advice::kWillNeed:
      return MADV_WILLNEED;
    case Advice::kHugePage:
      return MADV_HUGEPAGE;
    case Advice::kNoHugePage:
      return MADV_NOHUGEPAGE;
    case Advice::kCold:
      return MADV_COLD;
    case Advice::kCollapse:
      return MADV_COLLAPSE;
    case Advice::kPopulateWrite:
      return MADV_POPULATE_WRITE;
    case Advice::kWipeOnFork:
      return MADV_WIPEONFORK;
    case Advice::kDoFork:
      return MADV_DOFORK;
    case Advice::kDontFork:
      return MADV_DONTFORK;
    case Advice::kDontDump:
      return MADV_DONTDUMP;
    case Advice::kDoDump:
      return MADV_DODUMP;
    case Advice::kNormal:
      return MADV_NORMAL;
    case Advice::kRandom:
      return MADV_RANDOM;
  }
  return MADV_NORMAL;
}

// An unused range of `bytes` whose start has the alignment. Where the kernel chooses it: reserves more, and gives back
// what sticks out.
Result<Mapping> reserve_aligned(uint64_t bytes, uint64_t alignment_bytes) {
  if (const uintptr_t own = own_addresses().take(bytes, alignment_bytes))
    return Mapping(reinterpret_cast<void*>(own), bytes);
  uint64_t slack = alignment_bytes > kMmuPageBytes ? alignment_bytes : 0;
  void* got =
      raw::mmap(nullptr, bytes + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return failed("reserve", bytes);
  auto start = reinterpret_cast<uintptr_t>(got);
  uintptr_t aligned = round_up(start, alignment_bytes);
  if (aligned > start) raw::munmap(got, aligned - start);
  uintptr_t end = start + bytes + slack;
  if (end > aligned + bytes) raw::munmap(reinterpret_cast<void*>(aligned + bytes), end - (aligned + bytes));
  return Mapping(reinterpret_cast<void*>(aligned), bytes);
}

}  // namespace

Mapping::~Mapping() {
  if (base_) unmap(base_, bytes_);
}

void unmap(void* address, uint64_t bytes) {
  if (!own_addresses().give_back(reinterpret_cast<uintptr_t>(address), bytes)) raw::munmap(address, bytes);
}

Result<Mapping> reserve_range(uintptr_t address, uint64_t bytes) {
  if (address == 0) return reserve_aligned(bytes, kMmuPageBytes);
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  void* wanted = reinterpret_cast<void*>(address);
  void* got = raw::mmap(wanted, bytes, PROT_NONE, kFlags, -1, 0);
  if (got == MAP_FAILED) return failed("reserve", bytes);
  Mapping mapping(got, bytes);
  // Before Linux 4.17 the address is only a hint.
  if (got != wanted) return Status(EEXIST, "cannot reserve address space at its fixed address");
  return mapping;
}

Result<Mapping> map_anonymous(uint64_t bytes, uint64_t alignment_bytes) {
  auto range = reserve_aligned(bytes, alignment_bytes);
  if (!range) return range.status();
  if (Status status = protect(range->data(), bytes, Protection::kReadWrite); !status) return status;
  return std::move(*range);
}

Result<Mapping> map_shared(uint64_t bytes) {
  auto range = reserve_aligned(bytes, kMmuPageBytes);
  if (!range) return range.status();
  constexpr int kFlags = MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED;
  if (raw::mmap(range->data(), bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0) == MAP_FAILED)
    return failed("map", bytes);
  return std::move(*range);
}

Result<Mapping> map_table(uint64_t bytes) {
  const uint64_t rounded = round_up(bytes, bytes < kHugePageBytes ? kMmuPageBytes : kHugePageBytes);
  auto mapping = map_anonymous(rounded, kHugePageBytes);
  if (mapping && rounded >= kHugePageBytes) (void)advise(mapping->data(), rounded, Advice::kHugePage).is_ok();
  return mapping;
}

namespace {
Result<File> create_memory_file(const char* name, uint64_t bytes, unsigned flags) {
  int fd = ::memfd_create(name, MFD_CLOEXEC | flags);
  if (fd < 0) return failed("make a memory file for", bytes);
  File file(fd);
  if (Status status = set_file_size(file, bytes); !status) return status;
  return file;
}
}  // namespace

Result<File> create_memory_file(const char* name, uint64_t bytes) {
  return create_memory_file(name, bytes, 0);
}

Result<File> create_sealed_memory_file(const char* name, uint64_t bytes) {
  auto file = create_memory_file(name, bytes, MFD_ALLOW_SEALING);
  if (file && ::fcntl(file->fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return failed("seal a memory file of", bytes);
  return file;
}

bool cannot_shrink(const File& file) {
  const int seals = ::fcntl(file.fd(), F_GET_SEALS);  // -1 of what is no memory file
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

Result<Mapping> map_file(const File& file, uint64_t offset_bytes, uint64_t bytes, Protection protection,
                         uint64_t alignment_bytes) {
  auto range = reserve_aligned(bytes, alignment_bytes);
  if (!range) return range.status();
  if (Status status = map_file_at(range->data(), file, offset_bytes, bytes, protection); !status)
    return status;
  return std::move(*range);
}

Status map_file_at(void* address, const File& file, uint64_t offset_bytes, uint64_t bytes,
                   Protection protection) {
  void* got = raw::mmap(address, bytes, flags_of(protection), MAP_SHARED | MAP_FIXED, file.fd(),
                        static_cast<off_t>(offset_bytes));
  return got == MAP_FAILED ? failed("map", bytes) : Status::ok();
}

Status map_file_unforked_at(void* address, const File& file, uint64_t offset_bytes, uint64_t bytes,
                            Protection protection) {
  auto made = map_file(file, offset_bytes, bytes, protection);
  if (!made) return made.status();
  if (raw::madvise(made->data(), bytes, MADV_DONTFORK) != 0 ||
      raw::mremap(made->data(), bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, address) == MAP_FAILED)
    return failed("map", bytes);
  own_addresses().give_back_unmapped(reinterpret_cast<uintptr_t>(made->release()), bytes);
  return {};
}

Status map_file_as(void* address, const File& file, uint64_t bytes, Sharing sharing) {
  int flags = MAP_FIXED;
  switch (sharing) {
    case Sharing::kShared:
      flags |= MAP_SHARED;
      break;
    case Sharing::kPrivate:
      flags |= MAP_PRIVATE | MAP_NORESERVE;
      break;
    case Sharing::kSynchronous:
      flags |= MAP_SHARED_VALIDATE | MAP_SYNC;
      break;
  }
  void* got = raw::mmap(address, bytes, PROT_READ | PROT_WRITE, flags, file.fd(), 0);
  return got == MAP_FAILED ? failed("map", bytes) : Status::ok();
}

Status sync_mapped(void* address, uint64_t bytes) {
  return raw::msync(address, bytes, MS_SYNC) == 0 ? Status::ok() : failed("sync", bytes);
}

Status release_at(void* address, uint64_t bytes) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  void* got = raw::mmap(address, bytes, PROT_NONE, kFlags, -1, 0);
  return got == MAP_FAILED ? failed("release", bytes) : Status::ok();
}

Status protect(void* address, uint64_t bytes, Protection protection) {
  return raw::mprotect(address, bytes, flags_of(protection)) == 0 ? Status::ok() : failed("protect", bytes);
}

Status advise(void* address, uint64_t bytes, Advice advice) {
  return raw::madvise(address, bytes, flag_of(advice)) == 0 ? Status::ok() : failed("advise on", bytes);
}

bool is_page_present(uintptr_t address) {
  unsigned char present = 0;
  return raw::mincore(reinterpret_cast<void*>(round_down(address, kMmuPageBytes)), kMmuPageBytes, &present) ==
             0 &&
         (present & 1) != 0;
}

Result<ProcessMemory> process_memory() {
  auto status = open_file("/proc/self/status", O_RDONLY);
  if (!status) return status.status();
  return process_memory(*status);
}

Result<ProcessMemory> process_memory(const File& status) {
  auto text = read_small_file(status);
  if (!text) return text.status();
  ProcessMemory memory;
  memory.resident_bytes = kib_field(*text, "VmRSS:").value_or(0);
  memory.resident_anonymous_bytes = kib_field(*text, "RssAnon:").value_or(0);
  memory.resident_shared_bytes = kib_field(*text, "RssShmem:").value_or(0);
  memory.page_table_bytes = kib_field(*text, "VmPTE:").value_or(0);
  memory.resident_peak_bytes = kib_field(*text, "VmHWM:").value_or(0);
  return memory;
}

}  // namespace spw::platform
