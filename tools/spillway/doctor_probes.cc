#include "doctor_probes.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/io_uring.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "abi/abi.h"
#include "base/units.h"
#include "platform/call_dispatch.h"
#include "platform/machine.h"
#include "platform/memory.h"
#include "platform/proc_text.h"
#include "platform/resident_pages.h"
#include "platform/userfault.h"
#include "process/store_check.h"
#include "process/userfault_check.h"

namespace spw::tool {

namespace {

constexpr int kKernelMajorMin = 6;
constexpr int kKernelMinorMin = 1;
constexpr uint64_t kHugePageBytes = 2 * kMiB;

// The chosen word of "always [madvise] never", or the whole text where none is bracketed; "" where there is no file.
std::string setting(const std::string& path) {
  auto text = platform::read_small_file(path);
  if (!text) return "";
  std::string value = *text;
  while (!value.empty() && value.back() == '\n') value.pop_back();
  size_t open = value.find('['), close = value.find(']');
  return open == value.npos || close == value.npos ? value : value.substr(open + 1, close - open - 1);
}

Finding fine(std::string id, std::string title, std::string found = "") {
  return {std::move(id), std::move(title), Verdict::kOk, false, std::move(found), "", ""};
}
Finding essential(Finding finding) {
  finding.essential = true;
  return finding;
}

// What is found instead costs something; there is a way to mend it, or "".
Finding with_note(Finding finding, std::string found, std::string costs, std::string mend) {
  finding.verdict = Verdict::kNote;
  finding.found = std::move(found);
  finding.costs = std::move(costs);
  finding.mend = std::move(mend);
  return finding;
}
Finding missing(Finding finding, std::string found, std::string costs, std::string mend) {
  finding = with_note(std::move(finding), std::move(found), std::move(costs), std::move(mend));
  finding.verdict = Verdict::kMissing;
  return finding;
}

Finding kernel() {
  utsname name;
  std::string release = ::uname(&name) == 0 ? name.release : "";
  int major = 0, minor = 0;
  Finding f = fine("kernel", "kernel", release);
  if (std::sscanf(release.c_str(), "%d.%d", &major, &minor) == 2 &&
      std::pair(major, minor) >= std::pair(kKernelMajorMin, kKernelMinorMin))
    return f;
  return with_note(f, release, "Spillway is tested on Linux 6.1 and later only", "use a newer kernel");
}

// A system call that opens a descriptor: closes it again; 0 or the errno.
int try_descriptor_call(long descriptor) {
  if (descriptor < 0) return errno;
  ::close(static_cast<int>(descriptor));
  return 0;
}

Finding io_uring() {
  Finding f = fine("io_uring", "io_uring", "available");
  io_uring_params parameters{};
  int error = try_descriptor_call(::syscall(SYS_io_uring_setup, 8, &parameters));
  if (error == 0) return f;
  return with_note(
      f, std::strerror(error), "--io=io_uring is refused; the default, libaio, does without",
      "sysctl kernel.io_uring_disabled=0; in a container, a seccomp profile that allows io_uring_setup");
}

Finding libaio() {
  Finding f = fine("libaio", "libaio", "available");
  unsigned long context = 0;
  if (::syscall(SYS_io_setup, 1, &context) == 0) {
    ::syscall(SYS_io_destroy, context);
    return f;
  }
  return with_note(f, std::strerror(errno), "requests go through threads, with more processor time each",
                   "raise the limit: sysctl fs.aio-max-nr=1048576");
}

std::vector<Finding> store_findings(const std::string& directory) {
  const process::StoreFacts facts = process::check_store(directory);
  if (facts.named) return {fine("store", "store " + directory, "opened when a program starts")};
  const std::string free = format_size(facts.free_bytes) + " free";
  Finding usable = essential(fine("store", "store " + directory, free));
  if (!facts.refusal.empty())
    return {missing(usable, facts.refusal, "data that does not fit in memory has nowhere to go",
                    "name a directory on a local disk that you may write to, with --store")};
  if (!facts.drawback.empty())
    usable = with_note(usable, free, "it " + facts.drawback, "name a directory on a local disk with --store");
  Finding direct = fine("direct_io", "direct I/O there", "O_DIRECT works");
  if (!facts.direct)
    direct = with_note(direct, "O_DIRECT is refused",
                       "spilled data passes through the page cache: copied twice, and outside of the cap",
                       "use ext4, xfs, btrfs or a plain block device");
  return {usable, direct};
}

// Whether a shared memory file's pages can be made huge on request.
bool collapse_works() {
  auto file = platform::create_memory_file("spillway-doctor", kHugePageBytes);
  if (!file) return false;
  auto mapping =
      platform::map_file(*file, 0, kHugePageBytes, platform::Protection::kReadWrite, kHugePageBytes);
  if (!mapping) return false;
  std::memset((*mapping).data(), 1, kHugePageBytes);
  return platform::advise((*mapping).data(), kHugePageBytes, platform::Advice::kCollapse).is_ok();
}

Finding huge_pages() {
  const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
  const std::string shmem = setting(folder + "shmem_enabled");
  const bool collapse = collapse_works();
  Finding f = fine("huge_pages", "huge pages",
                   fmt::format("transparent {}, shared memory {}, MADV_COLLAPSE {}",
                               setting(folder + "enabled"), shmem, collapse ? "works" : "is refused"));
  if (collapse || shmem == "always" || shmem == "within_size" || shmem == "advise" || shmem == "force")
    return f;
  return with_note(f, f.found,
                   "frames lie in 4 KiB pages: more TLB misses, tens of percent where access is random",
                   "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled, as root");
}

Finding userfaultfd() {
  Finding f = fine("userfaultfd", "userfaultfd", "available");
  auto opened = process::open_userfault();
  if (opened && opened->scope() == platform::FaultScope::kAll) return f;
  if (opened)
    return with_note(f, "user mode only",
                     "system calls go through buffers in the interposed library functions; those made in "
                     "other ways fail with "
                     "EFAULT on data that is not in memory",
                     "sysctl vm.unprivileged_userfaultfd=1, or access to /dev/userfaultfd");
  return with_note(
      f, opened.status().message(),
      "page faults are served by access rights: about 1.6 times the time where many blocks come and go on a "
      "fast "
      "device; rings for asynchronous I/O get EFAULT for what is not in memory",
      "sysctl vm.unprivileged_userfaultfd=1; in a container, a seccomp profile that allows userfaultfd");
}

Finding call_dispatch() {
  Finding f = fine("call_dispatch", "syscall user dispatch", "available");
  if (platform::can_dispatch_calls()) return f;
  return with_note(
      f, "not allowed",
      "where threads serve their own faults, system calls made without libc (by liburing, Rust's rustix, "
      "assembly) fail with EFAULT on data that is not in memory; --faults=threads serves them",
      "use Linux 5.11 and glibc 2.34 or later; in a container, a seccomp profile that allows prctl of "
      "PR_SET_SYSCALL_USER_DISPATCH");
}

Finding vectored_release() {
  Finding f = fine("vectored_release", "vectored release", "process_madvise drops many ranges at once");
  if (platform::RangeReleaser().is_vectored()) return f;
  return with_note(f, "process_madvise does not drop a process's own pages",
                   "the mapped engine gives evicted pages back with a system call for each range",
                   "use Linux 6.13 or later; in a container, a seccomp profile that allows process_madvise "
                   "and pidfd_open");
}

Finding page_map() {
  Finding f = fine("page_map", "page map", "/proc/self/pagemap can be read");
  auto pages = platform::ResidentPages::open();
  if (pages) return f;
  return with_note(f, pages.status().message(),
                   "the mapped engine serves every first touch itself, also while all data fits in memory",
                   "mount /proc");
}

Finding memory() {
  auto available = platform::memory_available_bytes();
  auto limit = platform::cgroup_memory_limit_bytes();
  return fine("memory", "memory",
              fmt::format("{}, {}", available ? format_size(*available) + " available" : "unknown",
                          limit ? "control group limit " + format_size(*limit) : "no control group limit"));
}

Finding processors() { return fine("processors", "processors", fmt::format("{}", platform::cpu_count())); }

Finding mglru() {
  const std::string enabled = setting("/sys/kernel/mm/lru_gen/enabled");
  Finding f = fine("mglru", "multi-gen LRU", enabled);
  if (!enabled.empty() && enabled != "0x0000") return f;
  return with_note(
      f, enabled.empty() ? "not in this kernel" : "off",
      "nothing to Spillway; the kernel's own swapping, which you may compare with, chooses worse pages", "");
}

Finding managed_space() {
  Finding f = essential(
      fine("managed_space", "managed address space",
           fmt::format("{} at {:#x} can be reserved", format_size(SPW_MANAGED_BYTES), SPW_MANAGED_BASE)));
  auto range = platform::reserve_range(SPW_MANAGED_BASE, SPW_MANAGED_BYTES);
  if (range) return f;
  return missing(f, std::strerror(range.status().error()), "no program can start",
                 "lift the limit on address space (ulimit -v unlimited), and see overcommit below");
}

Finding address_limit() {
  Finding f = fine("address_limit", "limit on address space", "none");
  rlimit limit;
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return f;
  return with_note(f, format_size(limit.rlim_cur), "managed addresses count against it",
                   "ulimit -v unlimited");
}

Finding overcommit() {
  Finding f = fine("overcommit", "overcommit", setting("/proc/sys/vm/overcommit_memory"));
  if (f.found != "2") return f;
  return with_note(f, f.found, "the frames count in full from the start, and a large --memory can be refused",
                   "sysctl vm.overcommit_memory=0, as root");
}

}  // namespace

std::vector<Finding> examine_machine(const std::string& store) {
  std::vector<Finding> findings = {kernel(),        processors(),    memory(),
                                   managed_space(), address_limit(), overcommit()};
  for (Finding& finding : store_findings(store)) findings.push_back(std::move(finding));
  for (const Finding& finding : {io_uring(), libaio(), huge_pages(), userfaultfd(), call_dispatch(),
                                 vectored_release(), page_map(), mglru()})
    findings.push_back(finding);
  return findings;
}

}  // namespace spw::tool
