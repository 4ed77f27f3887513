// Small files that are asked for little, and then for more.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "parts.h"

namespace {

constexpr size_t kBlock = 4096;

int open_new(const char* path) { return open(path, O_RDWR | O_CREAT | O_TRUNC, 0600); }

void fill(int fd, size_t bytes, char with) {
  const std::string text(bytes, with);
  if (write(fd, text.data(), bytes) != static_cast<ssize_t>(bytes)) std::perror("write");
}

void say(const char* what, int fd) {
  std::string text(4u << 20, '\0');
  const ssize_t got = pread(fd, text.data(), text.size(), 0);
  unsigned long sum = 0;
  for (ssize_t i = 0; i < got; ++i) sum = sum * 31 + static_cast<unsigned char>(text[static_cast<size_t>(i)]);
  std::printf("%s: %zd bytes, %lx, at %ld\n", what, got, sum, static_cast<long>(lseek(fd, 0, SEEK_CUR)));
}

// `calls` calls on each of some files.
int few(long calls) {
  for (int i = 0; i < 8; ++i) {
    const int fd = open_new(("few" + std::to_string(i) + ".dat").c_str());
    for (long call = 1; call < calls; ++call) fill(fd, 100, static_cast<char>('a' + call % 26));
    say("few", fd);
    close(fd);
  }
  return 0;
}

// As much as one write has.
int much(long bytes) {
  const int fd = open_new("much.dat");
  fill(fd, static_cast<size_t>(bytes), 'm');
  fill(fd, kBlock, 'n');
  say("much", fd);
  close(fd);
  return 0;
}

int locked(long) {
  const int fd = open_new("locked.dat");
  fill(fd, 100, 'a');
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(fd, F_SETLK, &lock) != 0) std::perror("fcntl");
  fill(fd, 100, 'b');
  say("locked", fd);
  close(fd);
  return 0;
}

// The file has another name than the one it is opened by, which matches.
int linked(long) {
  close(open_new("plain.txt"));
  unlink("link.dat");
  if (symlink("plain.txt", "link.dat") != 0) std::perror("symlink");
  const int fd = open("link.dat", O_RDWR);
  for (int i = 0; i < 200; ++i) fill(fd, 100, 'l');
  say("linked", fd);
  close(fd);
  return 0;
}

// A child has the program's own open file, and its place.
int shared(long) {
  const int fd = open_new("shared.dat");
  fill(fd, 100, 'p');
  for (int round = 0; round < 50; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      fill(fd, 100, 'c');
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    fill(fd, 100, static_cast<char>('A' + round % 26));
  }
  say("shared", fd);
  close(fd);
  return 0;
}

// Two open files of one: neither misses what the other wrote, nor a new size.
int twice(long) {
  const int one = open_new("twice.dat"), other = open("twice.dat", O_RDWR | O_APPEND);
  for (int i = 0; i < 100; ++i) {
    fill(one, 100, 'a');
    fill(other, 50, 'b');
    if (i % 10 == 9 && ftruncate(i % 20 == 9 ? one : other, 70L * i) != 0) std::perror("ftruncate");
    if (i % 25 == 24 && truncate("twice.dat", 60L * i) != 0) std::perror("truncate");
  }
  say("twice", one);
  close(one);
  for (int i = 0; i < 200; ++i) fill(other, 50, 'c');
  say("one left", other);
  close(other);
  return 0;
}

// Threads read and write by one open file and its duplicate: each record is there once, whole, in some order.
int threads(long rounds) {
  constexpr int kThreads = 4, kRecords = 150;
  int wrong = 0;
  for (long round = 0; round < rounds; ++round) {
    const int fd = open_new("threads.dat"), copy = dup(fd);
    std::vector<std::thread> all;
    for (int thread = 0; thread < kThreads; ++thread)
      all.emplace_back([&, thread] {
        for (int i = 0; i < kRecords; ++i) {
          char record[16];
          std::snprintf(record, sizeof record, "%4d %4d %4ld", thread, i, round % 1000);
          record[15] = '\n';
          if (write(thread % 2 == 0 ? fd : copy, record, sizeof record) != sizeof record)
            std::perror("write");
        }
      });
    for (std::thread& thread : all) thread.join();
    std::string text(kThreads * kRecords * 16, '\0');
    lseek(copy, 0, SEEK_SET);
    std::vector<std::thread> readers;
    std::vector<std::string> parts(text.size() / 16);
    for (int thread = 0; thread < kThreads; ++thread)
      readers.emplace_back([&, thread] {
        for (int i = 0; i < kRecords; ++i) {
          std::string& part = parts[static_cast<size_t>(thread * kRecords + i)];
          part.resize(16);
          if (read(fd, part.data(), 16) != 16) std::perror("read");
        }
      });
    for (std::thread& thread : readers) thread.join();
    std::ranges::sort(parts);
    wrong += std::adjacent_find(parts.begin(), parts.end()) != parts.end();
    for (int thread = 0; thread < kThreads; ++thread)
      for (int i = 0; i < kRecords; ++i) {
        char record[16];
        std::snprintf(record, sizeof record, "%4d %4d %4ld", thread, i, round % 1000);
        record[15] = '\n';
        wrong += !std::ranges::binary_search(parts, std::string(record, 16));
      }
    close(fd);
    close(copy);
    unlink("threads.dat");
  }
  std::printf("%d wrong\n", wrong);
  return 0;
}

constexpr Part kParts[] = {{"few", few},       {"much", much},   {"locked", locked},  {"linked", linked},
                           {"shared", shared}, {"twice", twice}, {"threads", threads}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
