// Address ranges: reserving, mapping, protecting and advising them, and this process's memory use.
//
// A Mapping owns a range of addresses and unmaps it at its end. Unless it is large it lies among the runtime's own
// addresses (own_addresses.h). Pieces of a reservation are given memory with
// map_file_at / protect and taken back with release_at; the reservation stays whole all the while.
// Threads: any, on disjoint ranges. Limits: addresses and sizes are multiples of the MMU page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/status.h"
#include "platform/file.h"

namespace spw::platform {

class Mapping {
 public:
  Mapping() = default;
  Mapping(void* base, uint64_t bytes) : base_(static_cast<std::byte*>(base)), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();

  // It is the caller's from now on.
  std::byte* release() {
    bytes_ = 0;
    return std::exchange(base_, nullptr);
  }

  std::byte* data() const { return base_; }
  uint64_t bytes() const { return bytes_; }

 private:
  std::byte* base_ = nullptr;
  uint64_t bytes_ = 0;
};

// What a Mapping does at its end, for a whole one that was release()d.
void unmap(void* address, uint64_t bytes);

enum class Protection : uint8_t { kNone, kRead, kReadWrite };

// Addresses without access or memory. `address` 0: anywhere; otherwise exactly there, EEXIST when something
// is in the way.
Result<Mapping> reserve_range(uintptr_t address, uint64_t bytes);
// Zeroed private memory, allocated as it is touched and not counted against overcommit. `alignment_bytes`: of
// its start, a power of two.
Result<Mapping> map_anonymous(uint64_t bytes, uint64_t alignment_bytes = 4096);
// For a table that is read and changed at random: zeroed, and in huge pages where it is large and the kernel has them,
// since with small pages it would mostly be page tables that are waited for.
Result<Mapping> map_table(uint64_t bytes);
// Zeroed memory that forked children share. Async-signal-safe unless it fails.
Result<Mapping> map_shared(uint64_t bytes);
// Memory that can be mapped at several addresses at once.
Result<File> create_memory_file(const char* name, uint64_t bytes);
// The same of a size that nobody can change any more, so that who maps it need not fear to lose it to who made it.
Result<File> create_sealed_memory_file(const char* name, uint64_t bytes);
// Whether it is one whose maker can at least not make it shorter.
bool cannot_shrink(const File& file);
// Maps [offset, offset + bytes) of `file`, shared. `alignment_bytes`: of its start.
Result<Mapping> map_file(const File& file, uint64_t offset_bytes, uint64_t bytes, Protection protection,
                         uint64_t alignment_bytes = 4096);
// The same over a piece of a range the caller owns, whatever was there. Async-signal-safe unless it fails.
Status map_file_at(void* address, const File& file, uint64_t offset_bytes, uint64_t bytes,
                   Protection protection);
// As map_file_at(); forked children do not have it, from its first instant on.
Status map_file_unforked_at(void* address, const File& file, uint64_t offset_bytes, uint64_t bytes,
                            Protection protection);
// As map_file_at(), readable and writable. kPrivate: stores stay in this process. kSynchronous: stores reach
// persistent memory with the processor's own instructions alone (MAP_SYNC); EOPNOTSUPP where the file is not on such
// memory.
enum class Sharing : uint8_t { kShared, kPrivate, kSynchronous };
Status map_file_as(void* address, const File& file, uint64_t bytes, Sharing sharing);
// What was stored to a shared mapping of a file is durable.
Status sync_mapped(void* address, uint64_t bytes);
// Puts a piece of a reservation back to no access and no memory. Async-signal-safe unless it fails.
Status release_at(void* address, uint64_t bytes);
Status protect(void* address, uint64_t bytes, Protection protection);

enum class Advice : uint8_t {
  kDontNeed,  // drop the pages; private memory reads as zeros afterwards
  kRemove,    // punch a hole in the shared memory file behind the range
  kWillNeed,
  kHugePage,
  kNoHugePage,
  kCold,      // needed less than others; of a part of a huge page: it becomes small ones, at once
  kCollapse,  // make huge pages now; EINVAL before Linux 6.1, EAGAIN or ENOMEM when there are none
  kPopulateWrite,
  kDontFork,
  kDoFork,
  kWipeOnFork,  // a forked child finds zeros; private memory
  kDontDump,
  kDoDump,
  kNormal,  // files: the kernel reads ahead and around what is touched
  kRandom,  // files: it reads what is touched
};
Status advise(void* address, uint64_t bytes, Advice advice);

// Whether the page at `address` has memory, whatever its access rights. Async-signal-safe.
bool is_page_present(uintptr_t address);

struct ProcessMemory {
  uint64_t resident_bytes = 0;  // anonymous + file + shared
  uint64_t resident_anonymous_bytes = 0;
  uint64_t resident_shared_bytes = 0;  // of memory files and shared anonymous mappings
  uint64_t resident_peak_bytes = 0;
  uint64_t page_table_bytes = 0;  // of the kernel's, which a control group counts
};
Result<ProcessMemory> process_memory();
// The same of /proc/self/status that is kept open, which takes no descriptor for a moment.
Result<ProcessMemory> process_memory(const File& status);

}  // namespace spw::platform
