// The file "data" in the working directory, mapped to be written to, of a program whose memory outgrows the cap while
// it is stored to: outgrown PART MEBIBYTES.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "parts.h"

namespace {

constexpr int kThreads = 3;
constexpr size_t kApartWords = 513;  // one or two of each page

struct Words {
  uint64_t* data;
  size_t count;

  size_t per_thread() const { return count / kThreads; }
};

Words map_words() {
  const int fd = open("data", O_RDWR);
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0) std::exit(97);
  const auto bytes = static_cast<size_t>(info.st_size);
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) std::exit(96);
  close(fd);
  return {static_cast<uint64_t*>(data), bytes / sizeof(uint64_t)};
}

std::vector<uint64_t> copy_of(Words words) { return {words.data, words.data + words.count}; }

// Comes to be there piece by piece, and stays.
void outgrow(long mebibytes) {
  for (long i = 0; i < mebibytes; ++i) {
    auto* const piece = static_cast<volatile char*>(std::malloc(1u << 20));
    for (size_t at = 0; at < 1u << 20; at += 4096) piece[at] = static_cast<char>(i);
    usleep(500);
  }
}

// Threads count in words of their own; one makes durable what they have stored.
int counted(long mebibytes) {
  const Words words = map_words();
  const std::vector<uint64_t> before = copy_of(words);
  std::atomic<bool> is_done{false};
  std::vector<uint64_t> rounds(kThreads);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      uint64_t* const mine = words.data + t * words.per_thread();
      for (; !is_done; ++rounds[t])
        for (size_t i = 0; i < words.per_thread(); i += kApartWords) ++mine[i];
    });
  std::atomic<int> failed{0};
  std::thread syncer([&] {
    while (!is_done) failed += msync(words.data, words.count * sizeof(uint64_t), MS_SYNC) != 0;
  });
  outgrow(mebibytes);
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  syncer.join();
  size_t wrong = 0;
  for (size_t i = 0; i < words.count; ++i) {
    const size_t t = i / words.per_thread();
    const bool is_counted = t < kThreads && i % words.per_thread() % kApartWords == 0;
    wrong += words.data[i] != before[i] + (is_counted ? rounds[t] : 0);
  }
  std::printf("wrong %zu, failed %d\n", wrong, failed.load());
  // What the file is to have is known again.
  std::memcpy(words.data, before.data(), words.count * sizeof(uint64_t));
  for (size_t i = 0; i < words.count; i += kApartWords) words.data[i] = i;
  return 0;
}

// What the parent has stored the child finds, and the parent what the child stored while both had it in common.
int shared_with_a_child(long mebibytes) {
  const Words words = map_words();
  for (size_t i = 0; i < words.count; i += kApartWords) words.data[i] = i;
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    size_t wrong = 0;
    for (size_t i = 0; i < words.count; i += kApartWords) wrong += words.data[i] != i;
    for (size_t i = 1; i < words.count; i += kApartWords) words.data[i] = 2 * i;
    outgrow(mebibytes);
    for (size_t i = 0; i < words.count; i += kApartWords) wrong += words.data[i] != i;
    for (size_t i = 1; i < words.count; i += kApartWords) wrong += words.data[i] != 2 * i;
    _exit(wrong == 0 ? 0 : 1);
  }
  int status = -1;
  if (waitpid(child, &status, 0) != child) return 95;
  size_t wrong = 0;
  for (size_t i = 1; i < words.count; i += kApartWords) wrong += words.data[i] != 2 * i;
  std::printf("child %d, wrong %zu\n", status, wrong);
  return 0;
}

// Access rights that the program chose stay, whoever serves the file.
int protected_part(long mebibytes) {
  const Words words = map_words();
  if (mprotect(words.data, 1u << 20, PROT_READ) != 0) return 95;
  outgrow(mebibytes);
  const int zeros = open("/dev/zero", O_RDONLY);
  const ssize_t refused = read(zeros, words.data, 8);
  const ssize_t taken = read(zeros, words.data + (1u << 18), 8);
  std::printf("%zd %zd\n", refused, taken);
  if (mprotect(words.data, 1u << 20, PROT_READ | PROT_WRITE) != 0) return 94;
  words.data[1] = 1;
  if (munmap(words.data, 1u << 20) != 0) return 93;  // a part
  words.data[1u << 18] = 2;
  return 0;
}

constexpr Part kParts[] = {
    {"counted", counted}, {"shared_with_a_child", shared_with_a_child}, {"protected_part", protected_part}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
