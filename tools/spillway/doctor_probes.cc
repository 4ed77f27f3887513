#include "doctor_probes.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "abi/abi.h"
#include "base/units.h"
#include "platform/machine.h"
#include "platform/memory.h"
#include "platform/proc_text.h"
#include "runtime/store_check.h"

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

Finding kernel() {
  Finding f{"kernel", "kernel", Verdict::kOk, false, "", "", ""};
  utsname name;
  int major = 0, minor = 0;
  if (::uname(&name) == 0) f.found = name.release;
  if (std::sscanf(f.found.c_str(), "%d.%d", &major, &minor) != 2 ||
      std::pair(major, minor) < std::pair(kKernelMajorMin, kKernelMinorMin)) {
    f.verdict = Verdict::kNote;
    f.costs = "Spillway is tested on Linux 6.1 and later only";
    f.mend = "use a newer kernel";
  }
  return f;
}

// A system call that opens a descriptor: closes it again; 0 or the errno.
int try_descriptor_call(long descriptor) {
  if (descriptor < 0) return errno;
  ::close(static_cast<int>(descriptor));
  return 0;
}

Finding io_uring() {
  Finding f{"io_uring", "io_uring", Verdict::kOk, false, "available", "", ""};
  io_uring_params parameters{};
  if (int error = try_descriptor_call(::syscall(SYS_io_uring_setup, 8, &parameters))) {
    f.verdict = Verdict::kNote;
    f.found = std::strerror(error);
    f.costs = "requests go through libaio or threads, with more processor time each";
    f.mend =
        "sysctl kernel.io_uring_disabled=0; in a container, a seccomp profile that allows io_uring_setup";
  }
  return f;
}

Finding libaio() {
  Finding f{"libaio", "libaio", Verdict::kOk, false, "available", "", ""};
  unsigned long context = 0;
  if (::syscall(SYS_io_setup, 1, &context) == 0) {
    ::syscall(SYS_io_destroy, context);
  } else {
    f.verdict = Verdict::kNote;
    f.found = std::strerror(errno);
    f.costs = "where io_uring is missing too, requests go through threads";
    f.mend = "raise the limit: sysctl fs.aio-max-nr=1048576";
  }
  return f;
}

std::vector<Finding> store_findings(const std::string& directory) {
  const runtime::StoreFacts facts = runtime::check_store(directory);
  Finding usable{
      "store", "store " + directory, Verdict::kOk, true, format_size(facts.free_bytes) + " free", "", ""};
  if (!facts.refusal.empty()) {
    usable.verdict = Verdict::kMissing;
    usable.found = facts.refusal;
    usable.costs = "data that does not fit in memory has nowhere to go";
    usable.mend = "name a directory on a local disk that you may write to, with --store";
    return {usable};
  }
  if (facts.is_memory) {
    usable.verdict = Verdict::kNote;
    usable.found += ", on a tmpfs";
    usable.costs = "a tmpfs is memory itself, so nothing is gained";
    usable.mend = "name a directory on a disk with --store";
  }
  Finding direct{"direct_io", "direct I/O there", Verdict::kOk, false, "O_DIRECT works", "", ""};
  if (!facts.direct) {
    direct.verdict = Verdict::kNote;
    direct.found = "O_DIRECT is refused";
    direct.costs = "spilled data passes through the page cache: copied twice, and outside of the cap";
    direct.mend = "use ext4, xfs, btrfs or a plain block device";
  }
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
  Finding f{"huge_pages", "huge pages", Verdict::kOk, false, "", "", ""};
  const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
  const bool collapse = collapse_works();
  f.found = fmt::format("transparent {}, shared memory {}, MADV_COLLAPSE {}", setting(folder + "enabled"),
                        setting(folder + "shmem_enabled"), collapse ? "works" : "is refused");
  const std::string shmem = setting(folder + "shmem_enabled");
  if (!collapse && shmem != "always" && shmem != "within_size" && shmem != "advise" && shmem != "force") {
    f.verdict = Verdict::kNote;
    f.costs = "frames lie in 4 KiB pages: more TLB misses, tens of percent where access is random";
    f.mend = "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled, as root";
  }
  return f;
}

Finding userfaultfd() {
  Finding f{"userfaultfd", "userfaultfd", Verdict::kOk, false, "available", "", ""};
  if (int error = try_descriptor_call(::syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY))) {
    f.verdict = Verdict::kNote;
    f.found = std::strerror(error);
    f.costs = "nothing in this version; the mapped engine will need it";
    f.mend = "in a container, a seccomp profile that allows userfaultfd";
  }
  return f;
}

Finding memory() {
  Finding f{"memory", "memory", Verdict::kOk, false, "", "", ""};
  auto available = platform::memory_available_bytes();
  f.found = available ? format_size(*available) + " available" : "unknown";
  if (auto limit = platform::cgroup_memory_limit_bytes())
    f.found += ", control group limit " + format_size(*limit);
  else
    f.found += ", no control group limit";
  return f;
}

Finding processors() {
  return {"processors", "processors", Verdict::kOk, false, fmt::format("{}", platform::cpu_count()), "", ""};
}

Finding mglru() {
  Finding f{"mglru", "multi-gen LRU", Verdict::kOk, false, setting("/sys/kernel/mm/lru_gen/enabled"), "", ""};
  if (f.found.empty() || f.found == "0x0000") {
    f.verdict = Verdict::kNote;
    f.found = f.found.empty() ? "not in this kernel" : "off";
    f.costs =
        "nothing to Spillway; the kernel's own swapping, which you may compare with, chooses worse pages";
  }
  return f;
}

Finding managed_space() {
  Finding f{"managed_space", "managed address space", Verdict::kOk, true, "", "", ""};
  auto range = platform::reserve_range(SPW_MANAGED_BASE, SPW_MANAGED_BYTES);
  f.found = range
                ? fmt::format("{} at {:#x} can be reserved", format_size(SPW_MANAGED_BYTES), SPW_MANAGED_BASE)
                : std::string(std::strerror(range.status().error()));
  if (range) return f;
  f.verdict = Verdict::kMissing;
  f.costs = "no program can start";
  f.mend = "lift the limit on address space (ulimit -v unlimited), and see overcommit below";
  return f;
}

Finding address_limit() {
  Finding f{"address_limit", "limit on address space", Verdict::kOk, false, "none", "", ""};
  rlimit limit;
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    f.verdict = Verdict::kNote;
    f.found = format_size(limit.rlim_cur);
    f.costs = "managed addresses count against it";
    f.mend = "ulimit -v unlimited";
  }
  return f;
}

Finding overcommit() {
  Finding f{
      "overcommit", "overcommit", Verdict::kOk, false, setting("/proc/sys/vm/overcommit_memory"), "", ""};
  if (f.found == "2") {
    f.verdict = Verdict::kNote;
    f.costs = "the frames count in full from the start, and a large --memory can be refused";
    f.mend = "sysctl vm.overcommit_memory=0, as root";
  }
  return f;
}

}  // namespace

std::vector<Finding> examine_machine(const std::string& store) {
  std::vector<Finding> findings = {kernel(),        processors(),    memory(),
                                   managed_space(), address_limit(), overcommit()};
  for (Finding& finding : store_findings(store)) findings.push_back(std::move(finding));
  for (const Finding& finding : {io_uring(), libaio(), huge_pages(), userfaultfd(), mglru()})
    findings.push_back(finding);
  return findings;
}

}  // namespace spw::tool
