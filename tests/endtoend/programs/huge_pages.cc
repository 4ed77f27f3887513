// Memory that the program asks huge pages for: how much of it is in huge pages while it fits, and once it does not.
//   huge_pages MIB MORE_MIB    prints "fits A MiB, beyond B MiB, wrong N"
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr size_t kMiB = size_t{1} << 20, kPage = 4096;

char* grow(size_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, 2 * kMiB, bytes) != 0) std::exit(1);
  madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<char*>(memory);
}

// As the kernel counts what is mapped huge in [memory, memory + bytes).
size_t huge_mib(const char* memory, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  std::FILE* maps = std::fopen("/proc/self/smaps", "r");
  char line[512];
  size_t kib = 0;
  bool is_in = false;
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long from, to, huge;
    if (std::sscanf(line, "%lx-%lx ", &from, &to) == 2) is_in = from < begin + bytes && begin < to;
    if (is_in && std::sscanf(line, "AnonHugePages: %lu", &huge) == 1) kib += huge;
  }
  std::fclose(maps);
  return kib / 1024;
}

void fill(char* memory, size_t bytes, unsigned salt) {
  for (size_t at = 0; at < bytes; at += kPage)
    std::memset(memory + at, static_cast<int>(at / kPage * 7 + salt), kPage);
}

size_t wrong(const char* memory, size_t bytes, unsigned salt) {
  size_t found = 0;
  for (size_t at = 0; at < bytes; ++at) found += memory[at] != static_cast<char>(at / kPage * 7 + salt);
  return found;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const size_t bytes = std::strtoul(arguments[1], nullptr, 10) * kMiB,
               more = std::strtoul(arguments[2], nullptr, 10) * kMiB;
  char* const first = grow(bytes);
  fill(first, bytes, 1);
  const size_t fits = huge_mib(first, bytes);
  char* const second = grow(more);
  fill(second, more, 2);
  const size_t beyond = huge_mib(first, bytes) + huge_mib(second, more);
  const size_t lost = wrong(first, bytes, 1) + wrong(second, more, 2);
  std::printf("fits %zu MiB, beyond %zu MiB, wrong %zu\n", fits, beyond, lost);
}
