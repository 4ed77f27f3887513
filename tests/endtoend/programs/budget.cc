// Random reads of a mapped file, one thread: how many system calls it made meanwhile, how often it went to sleep, and
// how often it met a page that was not there.
// Not of Spillway: the kernel counts.
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

namespace {

constexpr int kSkipped = 77;

// A counter of this thread's system calls.
int open_counter() {
  uint64_t id = 0;
  for (const char* tracing : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"})
    if (id == 0) std::ifstream(std::string(tracing) + "/events/raw_syscalls/sys_enter/id") >> id;
  if (id == 0) {
    std::printf("the kernel's tracepoints cannot be read\n");
    std::exit(kSkipped);
  }
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.size = sizeof attributes;
  attributes.config = id;
  const int fd = static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
  if (fd < 0) {
    std::printf("perf_event_open: %s\n", std::strerror(errno));
    std::exit(kSkipped);
  }
  return fd;
}

uint64_t value_of(int counter) {
  uint64_t value = 0;
  return read(counter, &value, sizeof value) == sizeof value ? value : 0;
}

struct Usage {
  uint64_t calls, sleeps, faults;
};
Usage usage_by(int counter) {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return {value_of(counter), static_cast<uint64_t>(usage.ru_nvcsw),
          static_cast<uint64_t>(usage.ru_minflt + usage.ru_majflt)};
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const uint64_t pages = std::strtoull(arguments[1], nullptr, 10),
                 reads = std::strtoull(arguments[2], nullptr, 10);
  const int file = open("budget.data", O_RDWR | O_CREAT | O_TRUNC, 0600);
  std::vector<uint64_t> page(512);
  for (uint64_t i = 0; i < pages; ++i) {
    page[0] = i;
    if (write(file, page.data(), 4096) != 4096) return 1;
  }
  fsync(file);
  auto* words =
      static_cast<const volatile uint64_t*>(mmap(nullptr, pages * 4096, PROT_READ, MAP_SHARED, file, 0));
  if (words == MAP_FAILED) return 1;
  const int counter = open_counter();
  uint64_t state = 88172645463325252, wrong = 0;
  Usage before{};
  // The first half fills memory.
  for (uint64_t i = 0; i < 2 * reads; ++i) {
    if (i == reads) before = usage_by(counter);
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    wrong += words[state % pages * 512] != state % pages;
  }
  const Usage after = usage_by(counter);
  const auto print = [](const char* what, uint64_t value) {
    std::printf("%s %llu ", what, static_cast<unsigned long long>(value));
  };
  print("wrong", wrong);
  print("calls", after.calls - before.calls);
  print("sleeps", after.sleeps - before.sleeps);
  print("faults", after.faults - before.faults);
  std::printf("\n");
}
