// Sorts a file of 64-bit numbers in place, by threads, through umap.h: umap_sort FILE MEBIBYTES. Makes the file first,
// checks it afterwards with plain reads, and removes it.
#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "umap/umap.h"

namespace {

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

struct Mapped {
  Mapped(const std::string& path, std::size_t bytes, int more_flags) : bytes(bytes) {
    int fd = ::open(path.c_str(), O_RDWR | more_flags, 0600);
    if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) fail(path.c_str());
    void* data = umap(nullptr, bytes, PROT_READ | PROT_WRITE, UMAP_PRIVATE, fd, 0);
    if (data == UMAP_FAILED) fail("umap");
    ::close(fd);
    numbers = static_cast<uint64_t*>(data);
  }
  ~Mapped() {
    if (uunmap(numbers, bytes) != 0) fail("uunmap");
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  std::size_t bytes;
  uint64_t* numbers = nullptr;
};

// Quicksort whose halves are threads' down to `depth`.
void sort_by_threads(uint64_t* first, uint64_t* last, int depth) {
  if (depth == 0 || last - first < 4096) return std::sort(first, last);
  uint64_t* middle = first + (last - first) / 2;
  std::nth_element(first, middle, last);
  std::thread left([=] { sort_by_threads(first, middle, depth - 1); });
  sort_by_threads(middle, last, depth - 1);
  left.join();
}

// The file's numbers are 0, 1, 2 ... in this order: n * odd mod 2^k is a permutation.
bool is_sorted_in_file(const std::string& path, std::size_t count) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) fail(path.c_str());
  std::vector<uint64_t> part(64 * 1024);
  uint64_t expected = 0;
  for (std::size_t got; (got = std::fread(part.data(), 8, part.size(), file)) > 0;)
    for (std::size_t i = 0; i < got; ++i)
      if (part[i] != expected++) {
        std::fprintf(stderr, "number %zu is %zu\n", static_cast<std::size_t>(expected - 1),
                     static_cast<std::size_t>(part[i]));
        return false;
      }
  std::fclose(file);
  return expected == count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "umap_sort FILE MEBIBYTES (a power of two)\n"), 2;
  const std::string path = argv[1];
  const std::size_t bytes = std::strtoull(argv[2], nullptr, 10) << 20, count = bytes / 8;
  {
    Mapped made(path, bytes, O_CREAT | O_TRUNC);
    for (std::size_t i = 0; i < count; ++i) made.numbers[i] = (i * 2654435761u + 12345) & (count - 1);
  }
  {
    Mapped sorted(path, bytes, 0);
    sort_by_threads(sorted.numbers, sorted.numbers + count, 2);
  }
  bool good = is_sorted_in_file(path, count);
  ::unlink(path.c_str());
  std::puts(good ? "sorted" : "wrong");
  return good ? 0 : 1;
}
