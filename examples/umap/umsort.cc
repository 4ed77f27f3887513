// Sorts a file of 64-bit numbers in place, a file larger than memory:
// a program written for LLNL's UMap, which knows nothing of Spillway.
//
//     UMAP_BUFSIZE=65536 umsort make FILE MEBIBYTES     makes one
//     UMAP_BUFSIZE=65536 umsort sort FILE
//     UMAP_BUFSIZE=65536 umsort check FILE
//
// UMAP_BUFSIZE is the memory to use, in pages of 4 KiB (256 MiB here).
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "umap/umap.h"

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "umsort: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

class MappedNumbers {
 public:
  MappedNumbers(const std::string& path, int more_flags, std::size_t bytes) {
    int fd = ::open(path.c_str(), O_RDWR | more_flags, 0644);
    if (fd < 0 || (bytes > 0 && ::ftruncate(fd, static_cast<off_t>(bytes)) != 0)) fail(path);
    struct stat info{};
    if (::fstat(fd, &info) != 0) fail(path);
    bytes_ = static_cast<std::size_t>(info.st_size) / 8 * 8;
    void* mapped = umap(nullptr, bytes_, PROT_READ | PROT_WRITE, UMAP_PRIVATE, fd, 0);
    if (mapped == UMAP_FAILED) fail(path);
    ::close(fd);
    first_ = static_cast<uint64_t*>(mapped);
  }
  ~MappedNumbers() {
    if (uunmap(first_, bytes_) != 0) fail("uunmap");
  }
  MappedNumbers(const MappedNumbers&) = delete;
  MappedNumbers& operator=(const MappedNumbers&) = delete;

  uint64_t* begin() { return first_; }
  uint64_t* end() { return first_ + bytes_ / 8; }

 private:
  std::size_t bytes_ = 0;
  uint64_t* first_ = nullptr;
};

// Quicksort; its halves go to threads of their own, `depth` times.
void sort_by_threads(uint64_t* first, uint64_t* last, int depth) {
  if (depth == 0 || last - first < 65536) return std::sort(first, last);
  uint64_t* middle = first + (last - first) / 2;
  std::nth_element(first, middle, last);
  std::thread left([=] { sort_by_threads(first, middle, depth - 1); });
  sort_by_threads(middle, last, depth - 1);
  left.join();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "make" && argc == 4) {
    MappedNumbers numbers(argv[2], O_CREAT, std::strtoull(argv[3], nullptr, 10) << 20);
    uint64_t state = 1;
    for (uint64_t& number : numbers) number = state = state * 6364136223846793005u + 1442695040888963407u;
    return 0;
  }
  if (argc == 3 && (what == "sort" || what == "check")) {
    MappedNumbers numbers(argv[2], 0, 0);
    if (what == "sort") sort_by_threads(numbers.begin(), numbers.end(), 2);
    if (what == "sort" || std::is_sorted(numbers.begin(), numbers.end())) return 0;
    std::puts("not sorted");
    return 1;
  }
  std::fputs("umsort make FILE MEBIBYTES | umsort sort FILE | umsort check FILE\n", stderr);
  return 2;
}
