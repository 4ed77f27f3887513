#include "libc/map/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/exit_status.h"
#include "base/units.h"
#include "files/path_patterns.h"
#include "libc/alloc/rules.h"
#include "libc/entry.h"
#include "libc/io/bounce.h"
#include "libc/io/buffered.h"
#include "libc/io/descriptors.h"
#include "libc/managed.h"
#include "libc/map/mapped_files.h"
#include "libc/map/mapped_reads.h"
#include "libc/map/marks.h"
#include "libc/map/parts.h"
#include "libc/map/reservations.h"
#include "libc/map/rights.h"
#include "libc/real.h"
#include "platform/opens_watch.h"

namespace spw::libc {

using region::Kind;

namespace {

uintptr_t number(const void* p) { return reinterpret_cast<uintptr_t>(p); }

constexpr int kNeverManagedFlags =
    MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_STACK | MAP_GROWSDOWN | MAP_LOCKED | MAP_32BIT | MAP_HUGETLB;

bool wants_managed(size_t bytes, int protection, int flags) {
  return mapping_managed_by_size(bytes) && (flags & kNeverManagedFlags) == 0 && (protection & PROT_EXEC) == 0;
}

bool is_anonymous(int flags) { return (flags & MAP_ANONYMOUS) != 0; }
bool is_shared(int flags) { return (flags & MAP_TYPE) != MAP_PRIVATE; }

struct FileRequest {
  int fd;
  size_t bytes;
  uint64_t offset;
  bool shared;
  bool writable;
  struct stat info;
};

// Of a file that no pattern of --map-files matches.
void tell_of_unmatched(const Context& c, size_t bytes, int fd) {
  static Atomic<bool> told{false};
  if (c.warn == nullptr || bytes <= c.memory_bytes || told.exchange_acquire(true)) return;
  const std::string name = files::path_of(fd);
  c.warn("what is in memory of " + name + " (" + format_size(bytes) +
         " are mapped) is not kept within the cap: no --map-files matches it; --map-files='" + name +
         "' does");
}

// As mmap() would find; errno says what is wrong.
bool may_map_file(int fd, bool is_to_be_written) {
  const int mode = fcntl(fd, F_GETFL);
  if (mode < 0) return false;
  errno = (mode & O_PATH) != 0 ? EBADF : EACCES;
  const int access = mode & O_ACCMODE;
  return (mode & O_PATH) == 0 && access != O_WRONLY && (!is_to_be_written || access == O_RDWR);
}

// What is stored to the mapping is seen by others at once, or by other calls of this process: files that live in memory
// (memfd, /dev/shm) serve for nothing else, and of those on disks the ones that another process has open.
bool is_for_others(int fd) {
  struct statfs system;
  if (fstatfs(fd, &system) == 0 && (system.f_type == TMPFS_MAGIC || system.f_type == HUGETLBFS_MAGIC))
    return true;
  return platform::other_openers_of(fd) == platform::Openers::kOthers;
}

// What a file mapping needs to be managed; nothing where the kernel should decide (and refuse what it refuses).
bool can_map_file(const Context& c, int protection, int flags, int fd, off_t offset, FileRequest* request) {
  if (c.open_file_store == nullptr || offset < 0 || offset % kMmuPageBytes != 0) return false;
  if (c.maps_file && !c.maps_file(fd)) {
    tell_of_unmatched(c, request->bytes, fd);
    return false;
  }
  request->shared = is_shared(flags);
  request->writable = request->shared && (protection & PROT_WRITE) != 0;
  return may_map_file(fd, request->writable) && fstat(fd, &request->info) == 0 &&
         S_ISREG(request->info.st_mode) &&
         static_cast<uint64_t>(request->info.st_size) > static_cast<uint64_t>(offset) &&
         !(request->writable && is_for_others(fd));
}

MappedFiles::Part part_of(const FileRequest& request, uintptr_t address) {
  return {request.info.st_dev, request.info.st_ino,
          request.offset,      request.offset + round_up(request.bytes, kMmuPageBytes),
          request.writable,    address};
}

// Managed, or nullptr where the kernel should map the file instead.
void* map_file(const Context& c, const FileRequest& request) {
  auto store = c.open_file_store(request.fd, request.writable);
  if (!store || request.offset % (*store)->alignment_bytes() != 0) return nullptr;
  Kind kind = !request.shared    ? Kind::kPrivateFile
              : request.writable ? Kind::kSharedFile
                                 : Kind::kReadOnlyFile;
  auto mapped =
      c.heap->mappings().map_file(request.bytes, {c.regions->adopt(std::move(*store)), request.offset, kind});
  if (!mapped) return nullptr;
  dispatch_if_wanted();
  if (request.shared && !mapped_files().add(part_of(request, *mapped))) {
    c.heap->mappings().unmap(*mapped, request.bytes);
    return no_map(ENODEV);
  }
  return pointer(*mapped);
}

// What was stored to shared mappings of files reaches them, and is durable if asked for; false: some of it could not be
// written.
enum class Durable : bool { kNo, kYes };
bool write_shared_files(const Context& c, uintptr_t begin, uintptr_t end, Durable durable) {
  bool is_done = true;
  for_each_part(c, begin, end, [&](const Part& part) {
    const Blocks blocks = blocks_around(c, part.begin, part.end);
    if (part.kind != Kind::kSharedFile) return true;
    is_done = (durable == Durable::kYes ? c.regions->sync(blocks.begin, blocks.bytes)
                                        : c.regions->flush(blocks.begin, blocks.bytes))
                  .is_ok();
    return is_done;
  });
  return is_done;
}

// Where managed memory is not at its own addresses, its rights cannot be changed.
bool can_map_anonymous(const Context& c, const void* hint, size_t bytes, int protection) {
  if ((protection & kUsualRights) == kUsualRights) return true;
  return c.in_place && (protection != PROT_NONE || is_reservation_managed(hint, bytes, c.memory_bytes));
}

// nullptr where the kernel should map what is only reserved so far.
void* map_anonymous(const Context& c, size_t bytes, int protection) {
  const uintptr_t address = c.heap->mappings().map_anonymous(bytes);
  if (address == 0) return protection == PROT_NONE ? nullptr : no_map(ENOMEM);
  dispatch_if_wanted();
  if (!c.in_place || protection == kUsualRights) return pointer(address);
  const uintptr_t end = address + round_up(bytes, kMmuPageBytes);
  if (give_rights(c, address, end, protection) == 0) return pointer(address);
  c.heap->mappings().unmap(address, end - address);
  return MAP_FAILED;
}

// The private mapping of a file over managed memory: a copy of it, which the program may change as it likes.
// Behind the end of the file there are zeros.
bool copy_file(int fd, uint64_t offset, uintptr_t begin, uintptr_t end) {
  Bounce bounce(kBounceBytes, true);
  if (bounce.bytes() == 0) return false;
  while (begin < end) {
    const size_t wanted = std::min<size_t>(end - begin, bounce.bytes());
    const ssize_t got = real().pread(fd, bounce.data(), wanted, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;
    copy_bytes(pointer(begin), bounce.data(), static_cast<size_t>(got));
    begin += static_cast<size_t>(got);
    offset += static_cast<uint64_t>(got);
  }
  return true;
}

void* refuse_shared_part(const Context& c) {
  static Atomic<bool> told{false};
  if (c.warn != nullptr && !told.exchange_acquire(true))
    c.warn(
        "a shared mapping over a part of a reservation is refused (EINVAL): the reservation is managed "
        "memory; a larger --threshold leaves it to the kernel");
  return no_map(EINVAL);
}

}  // namespace

bool make_anonymous(const Context& c, uintptr_t begin, uintptr_t end) {
  bool is_free = true;
  std::vector<Part> had;
  for_each_part(c, begin, end, [&](const Part& part) {
    is_free = part.kind == Kind::kAnonymous && !part.is_object;
    had.push_back(part);
    return is_free;
  });
  if (!is_free || !c.heap->mappings().map_at(begin, end - begin)) return false;
  for (const Part& part : had) {
    remove_marks(c, part.begin, part.end);
    give_usual_rights(c, part.begin, part.end);
  }
  make_zero(c, begin, end);
  return true;
}

namespace {

bool is_anything_mapped(const Context& c, uintptr_t begin, uintptr_t end) {
  bool is_found = false;
  for_each_part(c, begin, end, [&](const Part&) {
    is_found = true;
    return false;
  });
  return is_found;
}

// MAP_FIXED at a managed address.
void* map_fixed(const Context& c, void* address, size_t bytes, int protection, int flags, int fd,
                off_t offset) {
  const Pages pages = pages_of(address, bytes);
  if (!pages.is_valid || offset % kMmuPageBytes != 0 || pages.is_empty()) return no_map(EINVAL);
  if ((flags & MAP_FIXED_NOREPLACE) != 0 && is_anything_mapped(c, pages.begin, pages.end))
    return no_map(EEXIST);
  if (!is_anonymous(flags) && !may_map_file(fd, is_shared(flags) && (protection & PROT_WRITE) != 0))
    return MAP_FAILED;
  if (is_shared(flags)) return refuse_shared_part(c);
  if (!make_anonymous(c, pages.begin, pages.end)) return no_map(ENOMEM);
  if (!is_anonymous(flags) && !copy_file(fd, static_cast<uint64_t>(offset), pages.begin, pages.end))
    return MAP_FAILED;
  if (c.in_place && protection != kUsualRights && give_rights(c, pages.begin, pages.end, protection) != 0)
    return MAP_FAILED;
  return address;
}

// What is only read, the kernel serves where it can.
void* map_reads(const Context& c, const FileRequest& request, void* address, int protection, int flags) {
  void* mapped = map_for_reading(c, is_managed(address) ? nullptr : address, request.bytes, protection, flags,
                                 request.fd, static_cast<off_t>(request.offset));
  if (mapped == nullptr || !request.shared || mapped_files().add(part_of(request, number(mapped))))
    return mapped;
  (void)unmap(mapped, request.bytes);
  return no_map(ENODEV);
}

// As map_reads(), where nobody keeps such mappings within the cap.
void* map_by_kernel(const FileRequest& request, void* address, int protection, int flags) {
  void* mapped = real().mmap(is_managed(address) ? nullptr : address, request.bytes, protection, flags,
                             request.fd, static_cast<off_t>(request.offset));
  if (mapped == MAP_FAILED || mapped_files().add(part_of(request, number(mapped)))) return mapped;
  real().munmap(mapped, request.bytes);
  return no_map(ENODEV);
}

// nullptr, with errno as it was: the kernel should map it, as it does in a forked child.
void* map_some_file(const Context& c, void* address, size_t bytes, int protection, int flags, int fd,
                    off_t offset) {
  if (access::is_forked()) return nullptr;
  FileRequest request{fd, bytes, static_cast<uint64_t>(offset), false, false, {}};
  const int saved_errno = errno;
  void* mapped = nullptr;
  if (can_map_file(c, protection, flags, fd, offset, &request)) {
    mapped = map_reads(c, request, address, protection, flags);
    const bool is_only_read = request.shared && !request.writable;
    if (mapped == nullptr && is_only_read && has_to_be_the_kernels(flags, fd))
      mapped = map_by_kernel(request, address, protection, flags);
    if (mapped == nullptr) mapped = map_file(c, request);
  }
  if (mapped != MAP_FAILED) errno = saved_errno;
  return mapped;
}

// By the kernel, which replaces what is there if it is told so.
void* map_in_place_of(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  if ((flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == MAP_FIXED) forget_replaced(address, bytes);
  return real().mmap(address, bytes, protection, flags, fd, offset);
}

}  // namespace

void forget_replaced(const void* address, size_t bytes) {
  if (release_reads(address, bytes) || mapped_files().has_unmanaged())
    mapped_files().remove(number(address), round_up(bytes, kMmuPageBytes));
}

void* map(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  const bool is_fixed = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
  if (is_the_kernels_to_map(flags, fd) && !(is_fixed && is_managed(address)))
    return map_in_place_of(is_managed(address) ? nullptr : address, bytes, protection, flags, fd, offset);
  if (is_fixed && !is_managed(address)) return map_in_place_of(address, bytes, protection, flags, fd, offset);
  const bool is_wanted = is_fixed || (bytes > 0 && wants_managed(bytes, protection, flags));
  const Context* c = is_wanted ? allocation_context() : nullptr;
  InRuntime guard;
  if (c != nullptr && is_fixed) return map_fixed(*c, address, bytes, protection, flags, fd, offset);
  if (c != nullptr) {
    if (!is_anonymous(flags)) {
      if ((protection & PROT_READ) == 0) return real().mmap(address, bytes, protection, flags, fd, offset);
      if (void* mapped = map_some_file(*c, address, bytes, protection, flags, fd, offset)) return mapped;
    } else if (!is_shared(flags) && can_map_anonymous(*c, address, bytes, protection)) {
      if (void* mapped = map_anonymous(*c, bytes, protection)) return mapped;
    }
  }
  if (is_fixed && is_managed(address)) return no_map(ENOMEM);
  return real().mmap(is_managed(address) ? nullptr : address, bytes, protection, flags, fd, offset);
}

int unmap(void* address, size_t bytes) {
  if (!is_managed(address)) {
    forget_replaced(address, bytes);
    return real().munmap(address, bytes);
  }
  InRuntime guard;
  const Pages pages = pages_of(address, bytes);
  if (!pages.is_valid || pages.is_empty()) return static_cast<int>(fail(EINVAL));
  const Context* c = context();
  if (c == nullptr) return 0;
  // What cannot be written is still mapped: nothing is lost. As with the kernel, nobody waits until it is durable.
  if (!write_shared_files(*c, pages.begin, pages.end, Durable::kNo)) return static_cast<int>(fail(EIO));
  for_each_part(*c, pages.begin, pages.end, [&](const Part& part) {
    if (part.is_object) return true;  // its owner frees it
    remove_marks(*c, part.begin, part.end);
    give_usual_rights(*c, part.begin, part.end);
    mapped_files().remove(part.begin, part.end - part.begin);
    c->heap->mappings().unmap(part.begin, part.end - part.begin);
    return true;
  });
  return 0;
}

// Where the process has its memory alone: what a child of vfork() leaves behind, its parent still has.
bool flush_mapped_files() {
  const Context* c = InRuntime::here() || access::is_forked() ? nullptr : context();
  if (c == nullptr || mapped_files().writer() != ::getpid()) return true;
  InRuntime guard;
  const Status status = c->regions->flush_shared_files();
  if (!status && c->warn != nullptr) c->warn("a file mapping was not written whole: " + status.message());
  return status.is_ok();
}

void flush_at_quick_exit() {
  ::at_quick_exit([] {
    if (!flush_mapped_files()) files_or_real()._exit(kExitFailure);
  });
}

int sync_mapping(void* address, size_t bytes, int flags) {
  if (!is_managed(address)) return real().msync(address, bytes, flags);
  InRuntime guard;
  const Context* c = context();
  const Pages pages = pages_of(address, bytes);
  const bool both = (flags & MS_SYNC) != 0 && (flags & MS_ASYNC) != 0;
  if (c == nullptr || both || (flags & ~(MS_SYNC | MS_ASYNC | MS_INVALIDATE)) != 0)
    return static_cast<int>(fail(EINVAL));
  if (!pages.is_valid) return static_cast<int>(fail(pages.begin % kMmuPageBytes != 0 ? EINVAL : ENOMEM));
  if ((flags & MS_INVALIDATE) != 0 && is_any_marked(pages.begin, pages.end, kLocked))
    return static_cast<int>(fail(EBUSY));
  if ((flags & MS_SYNC) != 0 && !write_shared_files(*c, pages.begin, pages.end, Durable::kYes))
    return static_cast<int>(fail(EIO));
  return has_no_hole(*c, pages.begin, pages.end) ? 0 : static_cast<int>(fail(ENOMEM));
}

}  // namespace spw::libc

using namespace spw::libc;

SPW_ENTRY void* __spw_mmap_v1(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  return map(address, bytes, protection, flags, fd, offset);
}
SPW_ENTRY void* __spw_mmap64_v1(void* address, size_t bytes, int protection, int flags, int fd,
                                off_t offset) {
  return map(address, bytes, protection, flags, fd, offset);
}
