// Mappings of the file "data" in the working directory that are only
// read, while there is less memory than the file has bytes.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "parts.h"
#include "print.h"

namespace {

constexpr size_t kPage = 4096, kMiB = 1 << 20;

struct File {
  int fd;
  size_t bytes;
  unsigned char* data;
};

File map_data(int open_flags = O_RDONLY, int flags = MAP_SHARED) {
  File file{open("data", open_flags), 0, nullptr};
  struct stat info;
  if (file.fd < 0 || fstat(file.fd, &info) != 0) std::exit(97);
  file.bytes = static_cast<size_t>(info.st_size);
  void* data = mmap(nullptr, file.bytes, PROT_READ, flags, file.fd, 0);
  if (data == MAP_FAILED) std::exit(96);
  file.data = static_cast<unsigned char*>(data);
  return file;
}

uint64_t sum_of(const unsigned char* data, size_t bytes, size_t step = kPage) {
  uint64_t sum = 0;
  for (size_t at = 0; at + 8 <= bytes; at += step) {
    uint64_t word;
    std::memcpy(&word, data + at, 8);
    sum = mix(sum, word);
  }
  return sum;
}

// In random order. Some words are compared with what read() gives.
size_t wrong_pages(const File& file, uint64_t seed, size_t reads) {
  size_t wrong = 0;
  for (size_t i = 0; i < reads; ++i) {
    const size_t at = next_random(&seed) % (file.bytes / kPage) * kPage;
    const uint64_t mapped = *reinterpret_cast<const volatile uint64_t*>(file.data + at);
    uint64_t read;
    if (i % 16 != 0) continue;
    wrong += pread(file.fd, &read, 8, static_cast<off_t>(at)) != 8 || read != mapped;
  }
  return wrong;
}

int random_reads(long) {
  const File file = map_data();
  std::atomic<size_t> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i)
    threads.emplace_back([&, i] { wrong += wrong_pages(file, 88172645463325252u + i, 30'000); });
  for (auto& thread : threads) thread.join();
  std::printf("wrong %zu\n", wrong.load());
  return 0;
}

int in_order(long) {
  const File file = map_data();
  for (int round = 0; round < 3; ++round) print_sum("sum", sum_of(file.data, file.bytes, 64));
  return 0;
}

int forked(long) {
  const File file = map_data();
  print_sum("parent", sum_of(file.data, file.bytes));
  std::fflush(stdout);
  if (fork() == 0) {
    print_sum("child", sum_of(file.data, file.bytes, 512));
    munmap(file.data, kMiB);
    const File again = map_data();
    print_sum("again", sum_of(again.data, again.bytes));
    std::fflush(stdout);
    _exit(3);
  }
  int status = 0;
  wait(&status);
  std::printf("status %d\n", WEXITSTATUS(status));
  return 0;
}

// Children that map and unmap, made while the parent's pages are evicted.
int forked_often(long) {
  const File file = map_data();
  std::atomic<bool> done{false};
  std::atomic<unsigned> rounds{0};
  std::thread reader([&] {
    for (uint64_t seed = 1; !done; ++seed, ++rounds) (void)wrong_pages(file, seed, 2000);
  });
  unsigned children = 0, right = 0;
  // In so many rounds much more has been read than the cap allows.
  for (; children < 200 || rounds < 8; ++children) {
    const pid_t child = fork();
    if (child == 0) {
      munmap(file.data + children % 200 * kPage, kMiB);
      const File again = map_data();
      _exit(std::memcmp(again.data + file.bytes / 2, file.data + file.bytes / 2, kMiB) == 0 ? 5 : 6);
    }
    int status = 0;
    waitpid(child, &status, 0);
    right += WIFEXITED(status) && WEXITSTATUS(status) == 5;
  }
  done = true;
  reader.join();
  std::printf("wrong %u\n", children - right);
  return 0;
}

int system_calls(long) {
  const File file = map_data();
  const int copy = open("copy", O_RDWR | O_CREAT | O_TRUNC, 0600);
  size_t written = 0;
  while (written < file.bytes) {
    const ssize_t now = write(copy, file.data + written, file.bytes - written);
    if (now <= 0) return 95;
    written += static_cast<size_t>(now);
  }
  std::vector<unsigned char> back(kMiB);
  size_t wrong = 0;
  for (size_t at = 0; at < file.bytes; at += kMiB) {
    const ssize_t got = pread(copy, back.data(), kMiB, static_cast<off_t>(at));
    wrong += got <= 0 || std::memcmp(back.data(), file.data + at, static_cast<size_t>(got)) != 0;
  }
  std::printf("wrong %zu\n", wrong);
  return 0;
}

// What comes to stand where a part was unmapped is nobody's to evict.
int replaced(long) {
  const File file = map_data();
  std::atomic<bool> done{false};
  const size_t half = file.bytes / 2 / kPage * kPage, bytes = 2 * kMiB;
  const File rest{file.fd, half, file.data};
  std::thread reader([&] {
    for (uint64_t seed = 1; !done; ++seed) (void)wrong_pages(rest, seed, 2000);
  });
  size_t wrong = 0;
  for (unsigned round = 0; round < 60; ++round) {
    unsigned char* at = file.data + half + round % 8 * kMiB;
    (void)sum_of(at, bytes);
    if (round % 2 == 0) munmap(at, bytes);
    void* mine = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (mine != at) return 94;
    std::memset(at, static_cast<int>(round + 1), bytes);
    usleep(20'000);
    for (size_t i = 0; i < bytes; ++i) wrong += at[i] != round + 1;
    if (mmap(at, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, file.fd, at - file.data) != at) return 93;
  }
  done = true;
  reader.join();
  std::printf("wrong %zu\n", wrong);
  return 0;
}

int written_privately(long) {
  const File file = map_data(O_RDONLY, MAP_PRIVATE), other = map_data();
  unsigned char* page = file.data + 5 * kMiB;
  std::printf("mprotect %d\n", mprotect(page, kMiB, PROT_READ | PROT_WRITE));
  std::memset(page, 0x5A, kMiB);
  std::printf("wrong %zu\n", wrong_pages(other, 7, 30'000));
  size_t lost = 0;
  for (size_t i = 0; i < kMiB; ++i) lost += page[i] != 0x5A;
  std::printf("lost %zu, changed the file %d\n", lost, std::memcmp(page, other.data + 5 * kMiB, kMiB) == 0);
  return 0;
}

int written_shared(long) {
  const File file = map_data(O_RDWR);
  unsigned char* page = file.data + 5 * kMiB;
  std::printf("mprotect %d\n", mprotect(page, kMiB, PROT_READ | PROT_WRITE));
  std::memset(page, 0x5A, kMiB);
  unsigned char byte = 0;
  if (pread(file.fd, &byte, 1, 5 * kMiB + 77) != 1) return 92;
  std::printf("in the file %02x\n", byte);
  const File only_read = map_data();
  errno = 0;
  const int refused = mprotect(only_read.data, kMiB, PROT_READ | PROT_WRITE);
  std::printf("mprotect %d %d\n", refused, errno);
  print_sum("sum", sum_of(only_read.data, only_read.bytes));
  return 0;
}

int moved(long) {
  File file = map_data();
  munmap(file.data + file.bytes / 2 / kPage * kPage, file.bytes - file.bytes / 2 / kPage * kPage);
  const size_t half = file.bytes / 2 / kPage * kPage;
  void* larger = mremap(file.data, half, file.bytes, MREMAP_MAYMOVE);
  if (larger == MAP_FAILED) return 91;
  file.data = static_cast<unsigned char*>(larger);
  std::printf("wrong %zu\n", wrong_pages(file, 11, 30'000));
  return 0;
}

int locked(long) {
  const File file = map_data();
  std::printf("mlock %d\n", mlock(file.data, 4 * kPage));
  std::printf("wrong %zu\n", wrong_pages(file, 13, 30'000));
  return 0;
}

int advised(long) {
  const File file = map_data();
  for (const int advice : {MADV_SEQUENTIAL, MADV_NORMAL, MADV_RANDOM, MADV_WILLNEED, MADV_DONTNEED})
    std::printf("madvise %d\n", madvise(file.data, file.bytes, advice));
  std::printf("wrong %zu\n", wrong_pages(file, 17, 30'000));
  return 0;
}

int shortened(long) {
  const File file = map_data(O_RDWR);
  if (ftruncate(file.fd, static_cast<off_t>(kMiB)) != 0) return 90;
  std::printf("%d\n", file.data[3 * kMiB]);
  return 0;
}

sigjmp_buf g_back;
int shortened_with_handler(long) {
  signal(SIGBUS, [](int) { siglongjmp(g_back, 1); });
  if (sigsetjmp(g_back, 1) == 0) return shortened(0);
  std::printf("caught\n");
  return 0;
}

const Part kParts[] = {
    {"random_reads", random_reads},
    {"in_order", in_order},
    {"forked", forked},
    {"forked_often", forked_often},
    {"system_calls", system_calls},
    {"replaced", replaced},
    {"written_privately", written_privately},
    {"written_shared", written_shared},
    {"moved", moved},
    {"locked", locked},
    {"advised", advised},
    {"shortened", shortened},
    {"shortened_with_handler", shortened_with_handler},
};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
