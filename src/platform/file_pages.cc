#include "platform/file_pages.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/units.h"
#include "platform/raw_calls.h"
#include "platform/userfault.h"

namespace spw::platform {

namespace {

// Of Linux 6.7, which the headers of the machine that we are built on
// may not know yet: linux/fs.h and linux/userfaultfd.h.
struct PageRegion {
  uint64_t start, end, categories;
};
struct ScanArgument {
  uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted, category_mask,
      category_anyof_mask, return_mask;
};
constexpr unsigned long kPagemapScan = _IOWR('f', 16, ScanArgument);
constexpr uint64_t kProtectionAllowed = 1 << 0, kPagePresent = 1 << 3;
constexpr uint64_t kFeatureWriteProtectAsync = 1 << 15;

constexpr size_t kRegionsAtOnce = 256;

bool can_scan(const File& page_map) {
  ScanArgument nothing{};
  nothing.size = sizeof nothing;
  nothing.category_mask = nothing.return_mask = kPagePresent;
  return ::ioctl(page_map.fd(), kPagemapScan, &nothing) == 0;
}

}  // namespace

uint64_t FilePages::Run::pages() const { return (end - begin) / kMmuPageBytes; }

Result<FilePages> FilePages::open() {
  FilePages pages;
  auto page_map = open_file("/proc/self/pagemap", O_RDONLY);
  if (!page_map) return page_map.status();
  auto counts = open_file("/proc/self/statm", O_RDONLY);
  if (!counts) return counts.status();
  FaultScope scope = FaultScope::kUserOnly;
  auto userfault = UserFault::open_with(kFeatureWriteProtectAsync, &scope);
  if (!userfault) return userfault.status();
  if (!can_scan(*page_map))
    return Status::sentence(ENOTSUP,
                            "this kernel cannot say which pages are present: Linux 6.7 or later is needed");
  pages.page_map_ = std::move(*page_map);
  pages.counts_ = std::move(*counts);
  pages.userfault_ = std::move(*userfault);
  return pages;
}

// Pages that could be write-protected are never mapped around a fault. None of them ever is protected.
Status FilePages::fault_singly(uintptr_t begin, uint64_t bytes) const {
  uffdio_register wish{{begin, bytes}, UFFDIO_REGISTER_MODE_WP, 0};
  if (::ioctl(userfault_.fd(), UFFDIO_REGISTER, &wish) != 0)
    return Status(errno, "cannot register a file mapping of " + format_size(bytes) + " with userfaultfd");
  return {};
}

Result<FilePages::Scan> FilePages::present(uintptr_t begin, uintptr_t end, std::span<Run> into) const {
  Scan scan{{}, 0, begin};
  size_t count = 0;
  PageRegion regions[kRegionsAtOnce];
  while (scan.reached < end && count < into.size()) {
    ScanArgument wish{};
    wish.size = sizeof wish;
    wish.start = scan.reached;
    wish.end = end;
    wish.vec = reinterpret_cast<uintptr_t>(regions);
    wish.vec_len = std::min(kRegionsAtOnce, into.size() - count);
    wish.category_mask = wish.return_mask = kPagePresent | kProtectionAllowed;
    const int found = ::ioctl(page_map_.fd(), kPagemapScan, &wish);
    if (found < 0 && errno == EINTR) continue;
    if (found < 0) return Status(errno, "cannot scan /proc/self/pagemap");
    for (int i = 0; i < found; ++i) {
      into[count] = {regions[i].start, regions[i].end};
      scan.pages += into[count++].pages();
    }
    scan.reached = wish.walk_end;
  }
  scan.runs = into.first(count);
  return scan;
}

Result<uint64_t> FilePages::present_pages() const {
  char text[128];
  const ssize_t got = raw::pread(counts_.fd(), text, sizeof text - 1, 0);
  if (got <= 0) return Status(got < 0 ? errno : EIO, "cannot read /proc/self/statm");
  text[got] = '\0';
  // size, resident, shared: in pages
  char* next = text;
  std::strtoull(next, &next, 10);
  std::strtoull(next, &next, 10);
  return std::strtoull(next, &next, 10);
}

Status unmap_pages(uintptr_t begin, uint64_t bytes) {
  if (raw::madvise(reinterpret_cast<void*>(begin), bytes, MADV_DONTNEED) == 0) return {};
  return Status(errno, "cannot unmap pages of a file");
}

void drop_cached(const File& file, uint64_t offset_bytes, uint64_t bytes) {
  (void)::posix_fadvise(file.fd(), static_cast<off_t>(offset_bytes), static_cast<off_t>(bytes),
                        POSIX_FADV_DONTNEED);
}

}  // namespace spw::platform
