#include "libc/map/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <string>

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
#include "libc/map/reservations.h"
#include "libc/real.h"

namespace spw::libc {

using heap::Mapping;
using region::Kind;

namespace {

MappedFiles& mapped_files() {
  static auto* files = new MappedFiles;  // never destroyed: munmap may run at exit
  return *files;
}

// Some range has had its access rights changed: those of a range that is handed out anew have to be put back.
Atomic<bool> protected_once{false};

constexpr int kUsualRights = PROT_READ | PROT_WRITE;

uintptr_t number(const void* p) { return reinterpret_cast<uintptr_t>(p); }
void* pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

void* no_map(int error) {
  errno = error;
  return MAP_FAILED;
}

constexpr int kNeverManagedFlags =
    MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_STACK | MAP_GROWSDOWN | MAP_LOCKED | MAP_32BIT;

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

// What a file mapping needs to be managed; nothing where the kernel should decide (and refuse what it refuses).
bool can_map_file(const Context& c, int protection, int flags, int fd, off_t offset, FileRequest* request) {
  if (c.open_file_store == nullptr || offset < 0 || offset % kMmuPageBytes != 0) return false;
  if (c.maps_file && !c.maps_file(fd)) {
    tell_of_unmatched(c, request->bytes, fd);
    return false;
  }
  int mode = fcntl(fd, F_GETFL);
  if (mode < 0 || (mode & O_ACCMODE) == O_WRONLY || (mode & O_PATH) != 0) return false;
  request->shared = is_shared(flags);
  request->writable = request->shared && (protection & PROT_WRITE) != 0;
  if (request->writable && (mode & O_ACCMODE) != O_RDWR) return false;
  return fstat(fd, &request->info) == 0 && S_ISREG(request->info.st_mode) &&
         static_cast<uint64_t>(request->info.st_size) > static_cast<uint64_t>(offset);
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

// Whole blocks of an anonymous range become never-written; the edges are zeroed.
void make_zero(const Context& c, uintptr_t begin, uintptr_t end) {
  uint64_t block = c.regions->block_bytes();
  uintptr_t first = round_up(begin, block), last = round_down(end, block);
  if (first >= last) return fill_bytes(pointer(begin), 0, end - begin);
  fill_bytes(pointer(begin), 0, first - begin);
  fill_bytes(pointer(last), 0, end - last);
  c.regions->discard(first, last - first);
}

// A private file's own bytes again.
bool restore_from_file(const Context& c, uintptr_t begin, uintptr_t end) {
  uint64_t block = c.regions->block_bytes();
  Bounce bounce(std::max<size_t>(block, kBounceBytes), true);
  if (bounce.bytes() == 0) return false;
  for (uintptr_t at = begin; at < end;) {
    uintptr_t start = round_down(at, block), stop = std::min(end, start + block);
    if (c.regions->kind_at(start) == Kind::kPrivateFile) {
      region::FileMapping file = c.regions->mapping_at(start);
      store::Request request;
      request.op = store::Op::kRead;
      request.offset_bytes = file.offset_bytes;
      request.segment_count = 1;
      request.segments[0] = {bounce.data(), block};
      if (!file.store->transfer(request)) return false;
      copy_bytes(pointer(at), bounce.data() + (at - start), stop - at);
    }
    at = stop;
  }
  return true;
}

// Calls part(begin, end, kind) for what is mapped of a range; false
// from it ends the walk. Nothing else of it is touched.
template <class Part>
bool for_each_mapped(const Context& c, uintptr_t begin, uintptr_t end, Part part) {
  while (begin < end) {
    Mapping hit = c.heap->mappings().find(begin, end);
    if (hit.kind == Kind::kNone) return true;
    uintptr_t to = std::min(end, hit.end());
    if (!part(std::max(begin, hit.address), to, hit.kind)) return false;
    begin = to;
  }
  return true;
}

bool is_mapped(const Context& c, uintptr_t begin, uintptr_t end) {
  uintptr_t expected = begin;
  for_each_mapped(c, begin, end, [&](uintptr_t from, uintptr_t to, Kind) {
    if (from != expected) return false;
    expected = to;
    return true;
  });
  return expected == end;
}

Status sync_range(const Context& c, uintptr_t begin, uintptr_t end) {
  uint64_t block = c.regions->block_bytes();
  return c.regions->sync(round_down(begin, block), round_up(end, block) - round_down(begin, block));
}

int give_rights(const Context& c, uintptr_t address, size_t bytes, int protection) {
  if (protection != kUsualRights) protected_once.store_relaxed(true);
  const auto error = c.access->program_protects(address, bytes, protection);
  if (!error) return real().mprotect(pointer(address), bytes, protection);
  return *error == 0 ? 0 : static_cast<int>(fail(*error));
}

// A range whose rights may have been changed is to be handed out anew.
void give_usual_rights(const Context& c, uintptr_t begin, uintptr_t end) {
  if (c.in_place && protected_once.load_relaxed()) (void)give_rights(c, begin, end - begin, kUsualRights);
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
  if (give_rights(c, address, round_up(bytes, kMmuPageBytes), protection) == 0) return pointer(address);
  c.heap->mappings().unmap(address, round_up(bytes, kMmuPageBytes));
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

// MAP_FIXED at a managed address.
void* map_fixed(const Context& c, void* address, size_t bytes, int protection, int flags, int fd,
                off_t offset) {
  uintptr_t begin = number(address), end = begin + round_up(bytes, kMmuPageBytes);
  if ((flags & MAP_FIXED_NOREPLACE) != 0) return no_map(EEXIST);
  if (begin % kMmuPageBytes != 0 || offset % kMmuPageBytes != 0 || bytes == 0) return no_map(EINVAL);
  if (is_shared(flags)) return refuse_shared_part(c);
  bool all_anonymous = is_mapped(c, begin, end) && for_each_mapped(c, begin, end, [](auto, auto, Kind kind) {
                         return kind == Kind::kAnonymous;
                       });
  if (!all_anonymous) return no_map(ENOMEM);
  give_usual_rights(c, begin, end);
  make_zero(c, begin, end);
  if (!is_anonymous(flags) && !copy_file(fd, static_cast<uint64_t>(offset), begin, end)) return MAP_FAILED;
  if (c.in_place && protection != kUsualRights && give_rights(c, begin, end - begin, protection) != 0)
    return MAP_FAILED;
  return address;
}

// Another place for the mapping that begins at `from`.
void* move_mapping(const Context& c, const Mapping& from, uintptr_t begin, size_t old_bytes,
                   size_t new_bytes) {
  uintptr_t to = 0;
  if (from.kind == Kind::kAnonymous) {
    to = c.heap->mappings().map_anonymous(new_bytes);
    if (to == 0) return no_map(ENOMEM);
    copy_bytes(pointer(to), pointer(begin), old_bytes);
  } else {
    if (begin % c.regions->block_bytes() != 0 || c.regions->kind_at(begin) == Kind::kNone)
      return no_map(EINVAL);
    // Not the blocks move but what they stand for: changes of a
    // shared file go there, those of a private one are copied.
    if (from.kind == Kind::kSharedFile)
      if (Status s = sync_range(c, begin, begin + old_bytes); !s) return no_map(EIO);
    auto mapped = c.heap->mappings().map_file(new_bytes, c.regions->mapping_at(begin));
    if (!mapped) return no_map(ENOMEM);
    to = *mapped;
    if (from.kind == Kind::kPrivateFile) copy_bytes(pointer(to), pointer(begin), old_bytes);
    mapped_files().move(begin, to, new_bytes);
  }
  c.heap->mappings().unmap(begin, old_bytes);
  return pointer(to);
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

// nullptr, with errno as it was: the kernel should map it, as it does in a forked child.
void* map_some_file(const Context& c, void* address, size_t bytes, int protection, int flags, int fd,
                    off_t offset) {
  if (access::is_forked()) return nullptr;
  FileRequest request{fd, bytes, static_cast<uint64_t>(offset), false, false, {}};
  const int saved_errno = errno;
  void* mapped = nullptr;
  if (can_map_file(c, protection, flags, fd, offset, &request)) {
    mapped = map_reads(c, request, address, protection, flags);
    if (mapped == nullptr) mapped = map_file(c, request);
  }
  if (mapped != MAP_FAILED) errno = saved_errno;
  return mapped;
}

}  // namespace

void* map(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  const bool is_fixed = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
  if (is_the_kernels_to_map(flags, fd) && !(is_fixed && is_managed(address)))
    return real().mmap(is_managed(address) ? nullptr : address, bytes, protection, flags, fd, offset);
  if (is_fixed && !is_managed(address)) {
    if ((flags & MAP_FIXED_NOREPLACE) == 0) release_reads(address, bytes);
    return real().mmap(address, bytes, protection, flags, fd, offset);
  }
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
    if (release_reads(address, bytes)) mapped_files().remove(number(address), round_up(bytes, kMmuPageBytes));
    return real().munmap(address, bytes);
  }
  InRuntime guard;
  if (number(address) % kMmuPageBytes != 0 || bytes == 0) return static_cast<int>(fail(EINVAL));
  const Context* c = context();
  if (c == nullptr) return 0;
  uintptr_t begin = number(address), end = begin + round_up(bytes, kMmuPageBytes);
  bool synced = for_each_mapped(*c, begin, end, [&](uintptr_t from, uintptr_t to, Kind kind) {
    return kind != Kind::kSharedFile || sync_range(*c, from, to).is_ok();
  });
  if (!synced) return static_cast<int>(fail(EIO));  // still mapped: nothing is lost
  give_usual_rights(*c, begin, end);
  c->heap->mappings().unmap(begin, end - begin);
  mapped_files().remove(begin, end - begin);
  return 0;
}

void* remap(void* address, size_t old_bytes, size_t new_bytes, int flags, void* new_address) {
  if ((flags & MREMAP_FIXED) != 0 && is_managed(new_address)) return no_map(EINVAL);
  if (!is_managed(address)) {
    if (auto moved = remap_reads(address, old_bytes, new_bytes, flags, new_address)) {
      if (*moved != MAP_FAILED)
        mapped_files().move(number(address), number(*moved), round_up(new_bytes, kMmuPageBytes));
      return *moved;
    }
    return real().mremap(address, old_bytes, new_bytes, flags, new_address);
  }
  InRuntime guard;
  const Context* c = context();
  uintptr_t begin = number(address);
  old_bytes = round_up(old_bytes, kMmuPageBytes);
  new_bytes = round_up(new_bytes, kMmuPageBytes);
  if (c == nullptr || begin % kMmuPageBytes != 0 || new_bytes == 0 || old_bytes == 0) return no_map(EINVAL);
  if ((flags & ~MREMAP_MAYMOVE) != 0) return no_map(EINVAL);
  Mapping from = c->heap->mappings().find(begin, begin + old_bytes);
  if (from.kind == Kind::kNone || from.address > begin || from.end() < begin + old_bytes)
    return no_map(EFAULT);
  if (new_bytes <= old_bytes) {
    if (new_bytes < old_bytes && unmap(pointer(begin + new_bytes), old_bytes - new_bytes) != 0)
      return MAP_FAILED;
    return address;
  }
  uint64_t block = c->regions->block_bytes();
  uintptr_t old_end = begin + old_bytes, block_end = std::min(round_up(old_end, block), begin + new_bytes);
  if (c->heap->mappings().extend(begin, old_bytes, new_bytes)) {
    // Pages of the last block that were unmapped before come back as zeros.
    if (from.kind == Kind::kAnonymous && old_end < block_end)
      fill_bytes(pointer(old_end), 0, block_end - old_end);
    if (from.kind != Kind::kAnonymous) mapped_files().move(begin, begin, new_bytes);
    return address;
  }
  if ((flags & MREMAP_MAYMOVE) == 0) return no_map(ENOMEM);
  return move_mapping(*c, from, begin, old_bytes, new_bytes);
}

int sync_mapping(void* address, size_t bytes, int flags) {
  if (!is_managed(address)) return real().msync(address, bytes, flags);
  InRuntime guard;
  const Context* c = context();
  uintptr_t begin = number(address), end = begin + round_up(bytes, kMmuPageBytes);
  bool both = (flags & MS_SYNC) != 0 && (flags & MS_ASYNC) != 0;
  if (c == nullptr || begin % kMmuPageBytes != 0 || both) return static_cast<int>(fail(EINVAL));
  if (!is_mapped(*c, begin, end)) return static_cast<int>(fail(ENOMEM));
  if ((flags & MS_SYNC) == 0) return 0;
  bool synced = for_each_mapped(*c, begin, end, [&](uintptr_t from, uintptr_t to, Kind kind) {
    return kind != Kind::kSharedFile || sync_range(*c, from, to).is_ok();
  });
  return synced ? 0 : static_cast<int>(fail(EIO));
}

namespace {
region::Order order_of(int advice) {
  switch (advice) {
    case MADV_RANDOM:
      return region::Order::kRandom;
    case MADV_SEQUENTIAL:
      return region::Order::kSequential;
    default:
      return region::Order::kUnknown;
  }
}
}  // namespace

int advise_mapping(void* address, size_t bytes, int advice) {
  if (!is_managed(address)) {
    const auto advised = advise_reads(address, bytes, advice);
    return advised ? *advised : real().madvise(address, bytes, advice);
  }
  InRuntime guard;
  const Context* c = context();
  uintptr_t begin = number(address), end = begin + round_up(bytes, kMmuPageBytes);
  if (c == nullptr || begin % kMmuPageBytes != 0) return static_cast<int>(fail(EINVAL));
  uint64_t block = c->regions->block_bytes();
  bool fine = true;
  switch (advice) {
    case MADV_DONTNEED:
    case MADV_FREE:
    case MADV_REMOVE:
      // Pages of objects that are no mappings keep what they hold.
      fine = for_each_mapped(*c, begin, end, [&](uintptr_t from, uintptr_t to, Kind kind) {
        if (kind == Kind::kAnonymous) make_zero(*c, from, to);
        return kind != Kind::kPrivateFile || advice != MADV_DONTNEED || restore_from_file(*c, from, to);
      });
      return fine ? 0 : static_cast<int>(fail(EIO));
    case MADV_WILLNEED:
    case MADV_POPULATE_READ:
    case MADV_POPULATE_WRITE:
      c->regions->prefetch(round_down(begin, block), round_up(end, block) - round_down(begin, block));
      return 0;
    case MADV_NORMAL:
    case MADV_RANDOM:
    case MADV_SEQUENTIAL:
      c->regions->advise_order(begin, end - begin, order_of(advice));
      return 0;
    default:
      return 0;  // hints about pages that are not there
  }
}

int protect_mapping(void* address, size_t bytes, int protection) {
  if (!is_managed(address)) {
    const auto changed = protect_reads(address, bytes, protection);
    return changed ? *changed : real().mprotect(address, bytes, protection);
  }
  if (number(address) % kMmuPageBytes != 0) return static_cast<int>(fail(EINVAL));
  if (const Context* c = context(); c != nullptr && c->in_place)
    return give_rights(*c, number(address), bytes, protection);
  return (protection & PROT_EXEC) != 0 ? static_cast<int>(fail(EACCES)) : 0;
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
