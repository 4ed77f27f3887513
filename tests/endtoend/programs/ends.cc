// Ends with something left to be written to a file that cannot be written any more: ends PART PATH HOW.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr size_t kBytes = 1 << 20;

int fail(const char* what) {
  std::perror(what);
  return 97;
}

// From now on the kernel refuses to write to any file (EFBIG).
bool forbid_writes() {
  const rlimit none{0, 0};
  return std::signal(SIGXFSZ, SIG_IGN) != SIG_ERR && ::setrlimit(RLIMIT_FSIZE, &none) == 0;
}

bool map_and_store(int fd) {
  // More than fits: the file is not left to the kernel.
  volatile auto* const more = static_cast<char*>(std::calloc(16, 1 << 20));
  if (more == nullptr || more[0] != 0) return false;
  if (::ftruncate(fd, kBytes) != 0) return false;
  void* const at = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return false;
  std::memset(at, 'x', kBytes);
  return true;
}

bool write_whole(int fd) {
  const std::string text(kBytes, 'y');
  return ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

struct Speaker {
  ~Speaker() { std::puts("destroyed"); }
};

}  // namespace

int main(int count, char** words) {
  if (count != 4) return 96;
  const std::string part = words[1], how = words[3];
  static Speaker speaker;
  std::atexit([] { std::puts("handled"); });
  const int fd = ::open(words[2], O_CREAT | O_RDWR, 0600);
  if (fd < 0 || !(part == "mapped" ? map_and_store(fd) : write_whole(fd))) return fail(words[2]);
  if (!forbid_writes()) return fail("setrlimit");
  std::puts("stored");
  if (how == "exit") std::exit(0);
  if (how == "fails") std::exit(3);
  if (how == "quick_exit") std::quick_exit(0);
  if (how == "at_once") {
    std::fflush(stdout);
    ::_exit(0);
  }
  return 0;
}
