#include "platform/resident_pages.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/units.h"
#include "platform/raw_calls.h"

namespace spw::platform {

namespace {
constexpr uint64_t kPresent = uint64_t{1} << 63, kSwapped = uint64_t{1} << 62;
constexpr size_t kEntriesAtOnce = 1024;
constexpr const char* kPageMap = "/proc/self/pagemap";

// What is the process's own in /proc is root's as long as it may not be dumped: after setuid(), or when it said so.
Result<File> open_though_not_dumped() {
  const long before = ::syscall(SYS_prctl, PR_GET_DUMPABLE, 0l, 0l, 0l, 0l);
  if (before == 1 || ::syscall(SYS_prctl, PR_SET_DUMPABLE, 1l, 0l, 0l, 0l) != 0)
    return Status(EACCES, std::string("cannot open ") + kPageMap);
  auto file = open_file(kPageMap, O_RDONLY);
  (void)::syscall(SYS_prctl, PR_SET_DUMPABLE, 0l, 0l, 0l, 0l);  // 2 can only be had by setuid()
  return file;
}
}  // namespace

Result<ResidentPages> ResidentPages::open() {
  auto file = open_file(kPageMap, O_RDONLY);
  if (!file && file.status().error() == EACCES) file = open_though_not_dumped();
  if (!file) return file.status();
  ResidentPages pages;
  pages.file_ = std::move(*file);
  return pages;
}

Status ResidentPages::read(const void* first, std::span<bool> exists) const {
  uint64_t entries[kEntriesAtOnce];
  uint64_t page = reinterpret_cast<uintptr_t>(first) / kMmuPageBytes;
  while (!exists.empty()) {
    const size_t wanted = std::min(exists.size(), kEntriesAtOnce);
    const ssize_t got = raw::pread(file_.fd(), entries, wanted * sizeof(uint64_t),
                                   static_cast<off_t>(page * sizeof(uint64_t)));
    if (got < 0 && errno == EINTR) continue;
    if (got < static_cast<ssize_t>(sizeof(uint64_t)))
      return Status(got < 0 ? errno : EIO, "cannot read /proc/self/pagemap");
    const size_t count = static_cast<size_t>(got) / sizeof(uint64_t);
    for (size_t i = 0; i < count; ++i) exists[i] = (entries[i] & (kPresent | kSwapped)) != 0;
    exists = exists.subspan(count);
    page += count;
  }
  return {};
}

}  // namespace spw::platform
