#include "libc/map/coherence.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "libc/entry.h"
#include "libc/io/bounce.h"
#include "libc/map/parts.h"
#include "libc/map/rights.h"
#include "libc/real.h"

namespace spw::libc {

namespace {

using Parts = std::vector<MappedFiles::Part>;

// Of the open file, with the place that a call is about.
struct Asked {
  const Context* c = nullptr;  // nullptr: nothing of it can be mapped here
  dev_t device = 0;
  ino_t inode = 0;
  uint64_t offset = 0, end = 0;

  Parts parts() const { return mapped_files().written_in(device, inode, offset, end); }
  template <class Visit>
  void visit(Visit visit) const {
    mapped_files().visit_written_in(device, inode, offset, end, visit);
  }
};

Asked ask(int fd, off_t offset, size_t bytes, bool ends_there) {
  Asked asked;
  const Context* c = InRuntime::here() || access::is_forked() ? nullptr : context();
  struct stat info{};
  if (c == nullptr || bytes == 0 || real().fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return asked;
  off_t at = offset;
  if (ends_there && (::fcntl(fd, F_GETFL) & O_APPEND) != 0)  // pwrite(2) appends, too
    at = info.st_size - static_cast<off_t>(bytes);
  else if (at < 0)
    at = real().lseek(fd, 0, SEEK_CUR) - (ends_there ? static_cast<off_t>(bytes) : 0);
  if (at < 0) return asked;
  asked.device = info.st_dev;
  asked.inode = info.st_ino;
  asked.offset = static_cast<uint64_t>(at);
  asked.end = bytes > UINT64_MAX - asked.offset ? UINT64_MAX : asked.offset + bytes;
  asked.c = c;
  return asked;
}

uint64_t bytes_of(const MappedFiles::Part& part) { return part.end - part.begin; }

bool write_stored(const Context& c, const Parts& parts) {
  return std::all_of(parts.begin(), parts.end(), [&](const MappedFiles::Part& part) {
    const Blocks blocks = blocks_around(c, part.address, part.address + bytes_of(part));
    return c.regions->flush(blocks.begin, blocks.bytes).is_ok();
  });
}

class KeptErrno {
 public:
  ~KeptErrno() { errno = had_; }

 private:
  const int had_ = errno;
};

// Bytes [begin, end) of the pieces go to `to`.
void store(const iovec* pieces, int count, uint64_t begin, uint64_t end, std::byte* to) {
  uint64_t at = 0;
  for (int i = 0; i < count && at < end; ++i) {
    const uint64_t bytes = pieces[i].iov_len;
    const uint64_t from = std::max(begin, at), upto = std::min(end, at + bytes);
    if (from < upto)
      copy_bytes(to + (from - begin), static_cast<const std::byte*>(pieces[i].iov_base) + (from - at),
                 upto - from);
    at += bytes;
  }
}

// The file's own bytes, once nothing that was stored before is on its way there.
void load(const Context& c, int fd, const MappedFiles::Part& part) {
  Bounce bounce(kBounceBytes, true);
  UsualRightsFor here(c, part.address, part.address + bytes_of(part));
  for (uint64_t done = 0; done < bytes_of(part) && bounce.bytes() != 0;) {
    const size_t wanted = std::min<uint64_t>(bounce.bytes(), bytes_of(part) - done);
    const ssize_t got = real().pread(fd, bounce.data(), wanted, static_cast<off_t>(part.begin + done));
    if (got <= 0) return;
    copy_bytes(pointer(part.address + done), bounce.data(), static_cast<size_t>(got));
    done += static_cast<uint64_t>(got);
  }
}

// Calls visit(part) for what of the part is live.
template <class Visit>
void for_each_live_part(const Context& c, const MappedFiles::Part& part, Visit visit) {
  for_each_live(c, part.address, part.address + bytes_of(part), [&](uintptr_t begin, uintptr_t end) {
    MappedFiles::Part live = part;
    live.address = begin;
    live.begin = part.begin + (begin - part.address);
    live.end = part.begin + (end - part.address);
    visit(live);
  });
}

}  // namespace

// Never destroyed: who writes at exit takes it, too. In a forked child nobody does, since what its parent had mapped is
// not of this process.
OutputTurn::OutputTurn(int fd, off_t offset) {
  if (fd < 0 || !files_are_written_in_memory() || mapped_files().writer() != ::getpid()) return;
  const KeptErrno kept;
  if (offset >= 0 && (::fcntl(fd, F_GETFL) & O_APPEND) == 0) return;
  const Asked asked = ask(fd, 0, SIZE_MAX, false);
  if (asked.c == nullptr) return;
  {
    InRuntime guard;
    if (asked.parts().empty()) return;
  }
  alignas(std::recursive_timed_mutex) static std::byte room[sizeof(std::recursive_timed_mutex)];
  static auto* turns = new (room) std::recursive_timed_mutex;
  is_not_cancelled_.emplace();
  // By this clock, since a wait by the steady one takes a younger glibc.
  turn_ = std::unique_lock(*turns, std::chrono::system_clock::now() + std::chrono::nanoseconds(kTurnWaitNs));
}

bool before_input(int fd, off_t offset, size_t bytes) {
  const KeptErrno kept;
  const Asked asked = ask(fd, offset, bytes, false);
  InRuntime guard;
  return asked.c == nullptr || write_stored(*asked.c, asked.parts());
}

bool before_output(int fd, off_t offset, size_t bytes) {
  const KeptErrno kept;
  const Asked asked = ask(fd, offset, bytes, false);
  InRuntime guard;
  if (asked.c == nullptr) return true;
  asked.visit([&](const MappedFiles::Part& part) {
    const Blocks blocks = blocks_around(*asked.c, part.address, part.address + bytes_of(part));
    asked.c->regions->mapping_at(blocks.begin).store->share_page_cache();
  });
  return write_stored(*asked.c, asked.parts());
}

void after_output(int fd, off_t offset, const iovec* pieces, int count, size_t done) {
  const KeptErrno kept;
  const Asked asked = ask(fd, offset, done, true);
  if (asked.c == nullptr) return;
  InRuntime guard;
  asked.visit([&](const MappedFiles::Part& part) {
    UsualRightsFor here(*asked.c, part.address, part.address + bytes_of(part));
    for_each_live_part(*asked.c, part, [&](const MappedFiles::Part& live) {
      store(pieces, count, live.begin - asked.offset, live.end - asked.offset,
            reinterpret_cast<std::byte*>(live.address));
    });
  });
}

void after_copy(int fd, off_t offset, size_t done) {
  const KeptErrno kept;
  const Asked asked = ask(fd, offset, done, true);
  if (asked.c == nullptr) return;
  InRuntime guard;
  asked.visit([&](const MappedFiles::Part& part) {
    for_each_live_part(*asked.c, part, [&](const MappedFiles::Part& live) { load(*asked.c, fd, live); });
  });
}

bool before_sync(int fd) { return before_input(fd, 0, SIZE_MAX); }

}  // namespace spw::libc
