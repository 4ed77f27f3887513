// What is stored to a shared mapping, as others see it: another process that has the file open, the program that this
// one becomes or runs, and whoever comes when it has ended. Each part is one byte in the middle of a file.
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

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

constexpr Part kParts[] = {{"held", held}, {"in_memory", in_memory}, {"looks", looks}, {"becomes", becomes},
                           {"runs", runs}, {"leaves", leaves},       {"left", left}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
