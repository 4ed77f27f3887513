// One file, seen in several ways: by streams that append, by descriptors that are the kernel's beside those that are
// buffered, by its times. A part prints what a program sees.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "parts.h"

namespace {

constexpr const char* kFile = "viewed.dat";

void put(int fd, size_t bytes, char byte, off_t offset) {
  const std::string block(bytes, byte);
  if (pwrite(fd, block.data(), bytes, offset) != static_cast<ssize_t>(bytes)) std::perror("pwrite");
}

int made(const char* text, int flags = O_RDWR) {
  const int fd = open(kFile, flags | O_CREAT | O_TRUNC, 0644);
  if (write(fd, text, strlen(text)) != static_cast<ssize_t>(strlen(text))) std::perror("write");
  return fd;
}

void print_contents(const char* name) {
  const int fd = open(kFile, O_RDONLY);
  std::string all(1 << 20, '\0');
  const ssize_t got = pread(fd, all.data(), all.size(), 0);
  std::printf("%s: %zd bytes, %.12s, sum", name, got, all.c_str());
  unsigned long sum = 0;
  for (ssize_t i = 0; i < got; ++i) sum = sum * 31 + static_cast<unsigned char>(all[static_cast<size_t>(i)]);
  std::printf(" %lx\n", sum);
  close(fd);
}

void print_line(const char* name, FILE* file) {
  char line[64] = "nothing";
  const bool got = std::fgets(line, sizeof line, file) != nullptr;
  std::printf("%s: %d %s at %ld\n", name, got, line, std::ftell(file));
}

// What is read first lies at the beginning, and what is written at the end.
int appending_streams(long) {
  close(made("first\nsecond\n"));
  FILE* file = std::fopen(kFile, "a+");
  print_line("a+", file);
  std::fseek(file, 0, SEEK_CUR);
  std::fputs("third\n", file);
  std::fclose(file);
  file = std::fopen(kFile, "a");
  std::printf("a: at %ld\n", std::ftell(file));
  std::fputs("fourth\n", file);
  file = std::freopen(kFile, "a+", file);
  print_line("a+ again", file);
  std::fclose(file);
  const int fd = open(kFile, O_RDWR);
  file = fdopen(fd, "a+");
  std::printf("appends: %d\n", (fcntl(fd, F_GETFL) & O_APPEND) != 0);
  print_line("a+ of a descriptor", file);
  std::fseek(file, 0, SEEK_SET);
  std::fputs("fifth\n", file);
  std::fclose(file);
  file = fdopen(open(kFile, O_WRONLY), "a");
  std::printf("a of a descriptor: at %ld\n", std::ftell(file));
  std::fclose(file);
  print_contents("in the end");
  return 0;
}

// A descriptor that is the kernel's empties the file, of which much was written by another.
int emptied_by_another(long) {
  int fd = made("");
  put(fd, 100'000, 'e', 0);
  int other = open(kFile, O_WRONLY | O_TRUNC | O_DIRECT);
  if (other < 0) other = open(kFile, O_WRONLY | O_TRUNC);  // a file system without direct I/O
  struct stat info;
  fstat(fd, &info);
  std::printf("%ld bytes\n", static_cast<long>(info.st_size));
  put(fd, 3, 'n', 0);
  close(other);
  close(fd);
  print_contents("emptied");
  return 0;
}

// Who could only read a file sees what is written to it once it may be.
int becomes_writable(long) {
  close(made("old contents"));
  chmod(kFile, 0444);
  const int reader = open(kFile, O_RDONLY);
  char seen[4] = "";
  ssize_t got = pread(reader, seen, 3, 0);
  chmod(kFile, 0644);
  const int writer = open(kFile, O_RDWR);
  put(writer, 3, 'n', 0);
  got += pread(reader, seen, 3, 0);
  std::printf("%zd %s\n", got, seen);
  put(writer, 5000, 'l', 100);
  struct stat info;
  fstat(reader, &info);
  std::printf("%ld bytes\n", static_cast<long>(info.st_size));
  return 0;
}

int copied_ranges(long) {
  const int fd = made("0123456789");
  off64_t from = 0, to = 5;
  errno = 0;
  ssize_t moved = copy_file_range(fd, &from, fd, &to, 8, 0);
  std::printf("overlapping: %zd %d, %ld %ld\n", moved, errno, static_cast<long>(from), static_cast<long>(to));
  from = 0, to = 100, errno = 0;
  moved = copy_file_range(fd, &from, fd, &to, size_t{1} << 40, 0);
  std::printf("far too much: %zd %d\n", moved, errno);
  from = 0, to = 10, errno = 0;
  moved = copy_file_range(fd, &from, fd, &to, 10, 0);
  std::printf("beside each other: %zd %d\n", moved, errno);
  close(fd);
  print_contents("copied");
  return 0;
}

int left_to_read(long) {
  const int fd = made("0123456789");
  const auto print_left = [fd] {
    int left = -1;
    const int asked = ioctl(fd, FIONREAD, &left);
    std::printf("%d %d\n", asked, left);
  };
  lseek(fd, 4, SEEK_SET);
  print_left();
  put(fd, 1, 'x', 99);
  print_left();
  return 0;
}

// What is changed of a file by change(descriptor) stays so, though all was written just before.
template <class Change>
void print_changed(const char* name, Change change) {
  unlink(kFile);  // which may have rights of an earlier run
  const int fd = made("");
  put(fd, 50'000, 't', 0);
  change(fd);
  close(fd);
  struct stat info;
  stat(kFile, &info);
  // A time of now differs from run to run.
  const bool is_now = info.st_mtim.tv_sec > 1'500'000'000;
  std::printf("%s: %ld, rights %o\n", name, is_now ? -1 : static_cast<long>(info.st_mtim.tv_sec),
              info.st_mode & 07777U);
}

int times_stay(long) {
  const timespec old[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  const timeval older[2] = {{900'000'000, 0}, {900'000'000, 0}};
  print_changed("futimens", [&](int fd) { futimens(fd, old); });
  print_changed("utimensat", [&](int) { utimensat(AT_FDCWD, kFile, old, 0); });
  print_changed("utimes", [&](int) { utimes(kFile, older); });
  print_changed("futimes", [&](int fd) { futimes(fd, older); });
  print_changed("fchmod", [&](int fd) { fchmod(fd, 04755); });
  return 0;
}

// While a file is left to the kernel (it is mapped), others open it, move and write.
int opened_meanwhile(long) {
  int moves = 0, writes = 0, places = 0, contents = 0;
  for (int round = 0; round < 8; ++round) {
    unlink(kFile);
    const int fd = made("");
    for (int i = 0; i < 64; ++i) put(fd, 256 << 10, 'o', static_cast<off_t>(i) << 18);
    std::atomic<bool> done{false};
    std::thread opener([&] {
      do {
        const int own = open(kFile, O_RDWR);
        moves += lseek(own, 1000, SEEK_SET) != 1000;
        writes += write(own, "w", 1) != 1;
        places += lseek(own, 0, SEEK_CUR) != 1001;
        close(own);
      } while (!done);
    });
    usleep(1000);
    const int kernels = open(kFile, O_RDWR | O_DIRECT);
    usleep(20'000);
    done = true;
    opener.join();
    char first = 0, there = 0;
    if (pread(fd, &first, 1, 0) != 1 || pread(fd, &there, 1, 1000) != 1) std::perror("pread");
    contents += first != 'o' || there != 'w';
    close(kernels);
    close(fd);
  }
  std::printf("wrong moves %d, writes %d, places %d, contents %d\n", moves, writes, places, contents);
  return 0;
}

// Whether this process has a lock of the file: one that an open file asks for by itself is in its way.
void print_lock(const char* name, int fd) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const int asked = fcntl(fd, F_OFD_GETLK, &lock);
  std::printf("%s: %d %d\n", name, asked, lock.l_type != F_UNLCK);
}

// A lock of a record is the process's, and given up with any descriptor of the file: by the program's own closes alone.
int record_locks(long) {
  const int fd = made("");
  for (int i = 0; i < 48; ++i) put(fd, 256 << 10, 'l', static_cast<off_t>(i) << 18);
  close(fd);
  const int again = open(kFile, O_RDWR);
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  std::printf("locked %d\n", fcntl(again, F_SETLK, &lock));
  char byte = 0;
  std::printf("read %zd\n", pread(again, &byte, 1, 3 << 20));
  print_lock("read", again);
  put(again, 2 << 20, 'w', 0);
  print_lock("written", again);
  void* mapped = mmap(nullptr, 12 << 20, PROT_READ, MAP_SHARED, again, 0);
  unsigned sum = 0;
  for (size_t at = 0; at < size_t{12} << 20; at += 4096) sum += static_cast<const unsigned char*>(mapped)[at];
  std::printf("mapped %u\n", sum);
  print_lock("mapped", again);
  munmap(mapped, 12 << 20);
  print_lock("unmapped", again);
  const int other = open(kFile, O_RDONLY);
  close(other);
  print_lock("closed", again);
  return 0;
}

// A stream that libc opens by itself sees what was written, and is seen.
int reopened_streams(long) {
  const int fd = made("written by a descriptor\n");
  FILE* file = std::freopen(kFile, "r", stdin);
  print_line("stdin", file);
  put(fd, 4, 'x', 0);
  file = std::freopen(kFile, "r+", file);
  print_line("again", file);
  std::fseek(file, 0, SEEK_SET);
  std::fputs("stream", file);
  std::fflush(file);
  char seen[7] = "";
  std::printf("%zd ", pread(fd, seen, 6, 0));
  std::printf("%s\n", seen);
  // Without a path the same file, in another mode.
  FILE* own = std::fopen("own.dat", "w");
  std::fputs("one line\nand another\n", own);
  own = std::freopen(nullptr, "r", own);
  print_line("own", own);
  own = std::freopen(nullptr, "r+", own);
  print_line("own again", own);
  std::fseek(own, 2, SEEK_SET);
  std::printf("%d\n", std::fputs("own", own) >= 0);
  std::rewind(own);
  print_line("changed", own);
  std::fclose(own);
  return 0;
}

// A child goes on with an open file of its parent's, one after the other.
int appended_by_child(long) {
  const int fd = open(kFile, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
  for (int round = 0; round < 3; ++round) {
    if (write(fd, "parent\n", 7) != 7) std::perror("write");
    const pid_t child = fork();
    if (child == 0) _exit(write(fd, "child\n", 6) != 6);
    waitpid(child, nullptr, 0);
  }
  if (write(fd, "end\n", 4) != 4) std::perror("write");
  close(fd);
  print_contents("appended");
  return 0;
}

constexpr Part kParts[] = {
    {"appending_streams", appending_streams}, {"emptied_by_another", emptied_by_another},
    {"becomes_writable", becomes_writable},   {"copied_ranges", copied_ranges},
    {"left_to_read", left_to_read},           {"times_stay", times_stay},
    {"opened_meanwhile", opened_meanwhile},   {"record_locks", record_locks},
    {"reopened_streams", reopened_streams},   {"appended_by_child", appended_by_child}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
