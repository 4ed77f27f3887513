// What is stored to a shared mapping, as others see it: another process that has the file open, the program that this
// one becomes or runs, and whoever comes when it has ended. Each part is one byte in the middle of a file.
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "parts.h"

extern char** environ;

namespace {

constexpr size_t kBytes = size_t{24} << 20, kPlace = (size_t{5} << 20) + 77;
constexpr char kName[] = "shared.data";

int made_file() {
  const int fd = open(kName, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || ftruncate(fd, kBytes) != 0) std::exit(90);
  return fd;
}

volatile char* mapped(int fd) {
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) std::exit(91);
  return static_cast<volatile char*>(memory);
}

int byte_of(const char* name) {
  char byte = 0;
  const int fd = open(name, O_RDONLY);
  if (pread(fd, &byte, 1, kPlace) != 1) return 92;
  close(fd);
  return byte;
}

// A child that had it open before; it reads once it is told to.
int held(long) {
  const int fd = made_file();
  int is_open[2], look[2];
  if (pipe(is_open) != 0 || pipe(look) != 0) return 93;
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    const int own = open(kName, O_RDONLY);
    if (write(is_open[1], "x", 1) != 1 || read(look[0], &byte, 1) != 1 || pread(own, &byte, 1, kPlace) != 1)
      _exit(92);
    _exit(byte);
  }
  char byte;
  if (read(is_open[0], &byte, 1) != 1) return 94;
  volatile char* memory = mapped(fd);
  memory[kPlace] = 42;
  int status = 0;
  if (write(look[1], "x", 1) != 1 || waitpid(child, &status, 0) != child) return 95;
  std::printf("the other one reads %d\n", WEXITSTATUS(status));
  return 0;
}

int in_memory(long) {
  const int fd = memfd_create("coherence", 0);
  if (fd < 0 || ftruncate(fd, kBytes) != 0) return 90;
  volatile char* memory = mapped(fd);
  memory[kPlace] = 43;
  char byte = 0;
  if (pread(fd, &byte, 1, kPlace) != 1) return 92;
  byte = static_cast<char>(byte + 1);
  if (pwrite(fd, &byte, 1, kPlace) != 1) return 93;
  std::printf("%d %d\n", byte, memory[kPlace]);
  return 0;
}

int looks(long) {
  std::printf("there is %d\n", byte_of(kName));
  return 0;
}

int run_self(const char* part) {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  if (length <= 0) return 96;
  self[length] = 0;
  char* const arguments[] = {self, const_cast<char*>(part), nullptr};
  pid_t child;
  int status = 0;
  if (posix_spawn(&child, self, nullptr, nullptr, arguments, environ) != 0 ||
      waitpid(child, &status, 0) != child)
    return 97;
  return WEXITSTATUS(status);
}

int becomes(long) {
  mapped(made_file())[kPlace] = 44;
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  if (length <= 0) return 96;
  self[length] = 0;
  execl(self, self, "looks", static_cast<char*>(nullptr));
  return 98;
}

int runs(long) {
  mapped(made_file())[kPlace] = 45;
  return run_self("looks");
}

int leaves(long) {
  mapped(made_file())[kPlace] = 46;
  _exit(0);
}

int left(long) {
  if (const int code = run_self("leaves"); code != 0) return code;
  return looks(0);
}

// Stores, calls that write, and looks from both sides, at random places; a copy in other memory says what is right.
class Both {
 public:
  Both() : fd_(made_file()), memory_(mapped(fd_)), right_(kBytes) {}

  int run(unsigned rounds) {
    for (unsigned i = 0; i < rounds; ++i) {
      const size_t at = random_() % (kBytes - kMost), bytes = 1 + random_() % kMost;
      change(at, bytes, static_cast<unsigned char>(1 + i % 250));
      if (!look(at > 5000 ? at - 5000 : 0, bytes + 5000)) return std::printf("round %u is wrong\n", i), 1;
    }
    for (size_t at = 0; at + kMost <= kBytes; at += kMost)
      if (!look(at, kMost)) return std::printf("%zu is wrong\n", at), 1;
    return std::puts("both sides agree"), 0;
  }

 private:
  static constexpr size_t kMost = 40'000;

  void change(size_t at, size_t bytes, unsigned char value) {
    std::memset(buffer_, value, bytes);
    iovec pieces[] = {{buffer_, bytes / 3}, {buffer_, bytes - bytes / 3}};
    const auto offset = static_cast<off_t>(at);
    switch (random_() % 6) {
      case 0:
      case 1:
        for (size_t i = 0; i < bytes; ++i) memory_[at + i] = static_cast<char>(value);
        break;
      case 2:
        wrote(pwrite(fd_, buffer_, bytes, offset), bytes);
        break;
      case 3:
        lseek(fd_, offset, SEEK_SET);
        wrote(write(fd_, buffer_, bytes), bytes);
        break;
      case 4:
        wrote(pwritev(fd_, pieces, 2, offset), bytes);
        break;
      default: {  // from what is there
        off_t from = static_cast<off_t>(kBytes - kMost), to = offset;
        if (at + bytes > kBytes - kMost) bytes = 0;
        std::memcpy(buffer_, right_.data() + from, bytes);
        for (size_t left = bytes; left > 0;) {
          const ssize_t done = copy_file_range(fd_, &from, fd_, &to, left, 0);
          if (done <= 0) std::exit(95);
          left -= static_cast<size_t>(done);
        }
      }
    }
    std::memcpy(right_.data() + at, buffer_, bytes);
  }
  static void wrote(ssize_t done, size_t bytes) {
    if (done != static_cast<ssize_t>(bytes)) std::exit(94);
  }
  bool look(size_t at, size_t bytes) {
    if (at + bytes > kBytes) bytes = kBytes - at;
    iovec piece{seen_, bytes};
    switch (random_() % 4) {
      case 0:
        if (pread(fd_, seen_, bytes, static_cast<off_t>(at)) != static_cast<ssize_t>(bytes)) return false;
        break;
      case 1:
        lseek(fd_, static_cast<off_t>(at), SEEK_SET);
        if (read(fd_, seen_, bytes) != static_cast<ssize_t>(bytes)) return false;
        break;
      case 2:
        if (preadv(fd_, &piece, 1, static_cast<off_t>(at)) != static_cast<ssize_t>(bytes)) return false;
        break;
      default:
        for (size_t i = 0; i < bytes; ++i) seen_[i] = memory_[at + i];
    }
    return std::memcmp(seen_, right_.data() + at, bytes) == 0;
  }

  const int fd_;
  volatile char* const memory_;
  std::vector<char> right_;
  std::mt19937 random_{7};
  char buffer_[kMost], seen_[kMost + 5000];
};

int both(long) { return std::make_unique<Both>()->run(600); }

// A mapping that is only read, of a file that is written by calls, as databases do.
int only_read(long) {
  const int fd = made_file();
  void* memory = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return 91;
  const volatile char* seen = static_cast<const volatile char*>(memory);
  long sum = 0;
  std::mt19937 random{9};
  for (int i = 0; i < 3000; ++i) {
    const size_t at = random() % kBytes;
    const char before = seen[at], after = static_cast<char>(before + 1 + i % 7);
    if (pwrite(fd, &after, 1, static_cast<off_t>(at)) != 1) return 93;
    if (seen[at] != after) return std::printf("write %d is not seen\n", i), 1;
    sum += seen[random() % kBytes];
  }
  return std::printf("all is seen, %ld\n", sum), 0;
}

constexpr Part kParts[] = {{"both", both},           {"only_read", only_read}, {"held", held},
                           {"in_memory", in_memory}, {"looks", looks},         {"becomes", becomes},
                           {"runs", runs},           {"leaves", leaves},       {"left", left}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
