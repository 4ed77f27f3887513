// Mappings of files that are moved in part, that go on behind the file's end, and that others replace.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "parts.h"

namespace {

constexpr size_t kMiB = 1 << 20, kPage = 4096;

int made_file(size_t bytes) {
  const int fd = open("replaced", O_RDWR | O_CREAT | O_TRUNC, 0600);
  std::string block(kMiB, '\0');
  for (size_t at = 0; at < bytes; at += kMiB) {
    for (size_t i = 0; i < kMiB; i += kPage)
      memset(&block[i], static_cast<int>((at + i) / kPage % 251), kPage);
    if (write(fd, block.data(), kMiB) != static_cast<ssize_t>(kMiB)) perror("write");
  }
  return fd;
}

unsigned sum(const unsigned char* from, size_t bytes) {
  unsigned sum = 0;
  for (size_t i = 0; i < bytes; i += 64) sum = sum * 31 + from[i];
  return sum;
}

unsigned char* mapped(size_t bytes, int protection, int flags, int fd) {
  return static_cast<unsigned char*>(mmap(nullptr, bytes, protection, flags, fd, 0));
}

int private_beyond_end(long) {
  const int fd = made_file(5 * kMiB);
  unsigned char* old = mapped(10 * kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
  old[kMiB + 5] = 77;
  auto* moved = static_cast<unsigned char*>(mremap(old, 10 * kMiB, 20 * kMiB, MREMAP_MAYMOVE));
  printf("moved %d, %d, sum %u\n", moved != MAP_FAILED, moved[kMiB + 5], sum(moved, 5 * kMiB));
  return 0;
}

// The second half is moved, and made longer; both halves are still of the file that others write.
int half_of_shared(long) {
  const int fd = made_file(16 * kMiB);
  unsigned char* first = mapped(8 * kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
  auto* second = static_cast<unsigned char*>(mremap(first + 4 * kMiB, 4 * kMiB, 8 * kMiB, MREMAP_MAYMOVE));
  printf("moved %d\n", second != MAP_FAILED);
  const std::string written(3 * kPage, 'w');
  for (const size_t at : {kMiB, 5 * kMiB, 10 * kMiB})
    if (pwrite(fd, written.data(), written.size(), static_cast<off_t>(at)) !=
        static_cast<ssize_t>(written.size()))
      perror("pwrite");
  printf("%c %c %c\n", first[kMiB], second[kMiB], second[6 * kMiB]);
  first[2 * kMiB] = 'f';
  second[2 * kMiB] = 's';
  msync(first, 4 * kMiB, MS_SYNC);
  msync(second, 8 * kMiB, MS_SYNC);
  char seen[2];
  if (pread(fd, seen, 1, 2 * kMiB) != 1 || pread(fd, seen + 1, 1, 6 * kMiB) != 1) perror("pread");
  printf("%c%c, sums %u %u\n", seen[0], seen[1], sum(first, 4 * kMiB), sum(second, 8 * kMiB));
  return 0;
}

// What comes to stand in the midst of a mapping that is only read stays there while the rest is evicted.
int replaced_in_the_midst(long way) {
  const int fd = made_file(48 * kMiB);
  unsigned char* all = mapped(48 * kMiB, PROT_READ, MAP_SHARED, fd);
  unsigned before = sum(all, 48 * kMiB);
  constexpr size_t kBytes = 64 * kPage;
  int wrong = 0;
  for (int round = 0; round < 40; ++round) {
    unsigned char* at = all + (static_cast<size_t>(round) + 2) * kMiB + 3 * kPage;
    if (way == 0) {
      unsigned char* own = mapped(kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
      memset(own, round + 1, kBytes);
      if (mremap(own, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at) return 91;
    } else {
      const int segment = shmget(IPC_PRIVATE, kBytes, IPC_CREAT | 0600);
      if (shmat(segment, at, SHM_REMAP) != at) return 92;
      shmctl(segment, IPC_RMID, nullptr);
      memset(at, round + 1, kBytes);
    }
    before += sum(all, 48 * kMiB);
    for (size_t i = 0; i < kBytes; ++i) wrong += at[i] != round + 1;
  }
  for (int round = 0; round < 40; ++round)
    for (size_t i = 0; i < kBytes; ++i)
      wrong += all[(static_cast<size_t>(round) + 2) * kMiB + 3 * kPage + i] != round + 1;
  printf("%d wrong, sum %u\n", wrong, before);
  return 0;
}

// Threads write records one after the other by one descriptor: the mapping has what the file has.
int written_by_threads(long) {
  const int fd = made_file(4 * kMiB);
  unsigned char* all = mapped(4 * kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
  unsigned before = sum(all, 4 * kMiB);
  lseek(fd, 0, SEEK_SET);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread)
    threads.emplace_back([&, thread] {
      const std::string record(100, static_cast<char>('a' + thread)),
          same(64, static_cast<char>('A' + thread));
      for (int i = 0; i < 4000; ++i) {
        if (write(fd, record.data(), record.size()) != 100) perror("write");
        if (pwrite(fd, same.data(), same.size(), 3 * kMiB + 40) != 64) perror("pwrite");
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::string file(4 * kMiB, '\0');
  if (pread(fd, file.data(), file.size(), 0) != static_cast<ssize_t>(file.size())) perror("pread");
  printf("before %u, the same %d, ", before, memcmp(file.data(), all, file.size()) == 0);
  int counts[3] = {};
  for (size_t at = 0; at < 12'000 * 100; at += 100) ++counts[(all[at] - 'a') % 3];
  printf("%d %d %d\n", counts[0], counts[1], counts[2]);
  return 0;
}

// A mapping that is longer than its file, which then gets longer.
int written_behind_end(long) {
  const int fd = made_file(kMiB);
  unsigned char* all = mapped(4 * kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
  printf("%u, ", sum(all, kMiB));
  const std::string written(kPage, 'w');
  printf("%zd, ", pwrite(fd, written.data(), kPage, 2 * kMiB));
  printf("%u\n", sum(all, kMiB));
  return 0;
}

constexpr Part kParts[] = {{"private_beyond_end", private_beyond_end},
                           {"half_of_shared", half_of_shared},
                           {"written_by_threads", written_by_threads},
                           {"written_behind_end", written_behind_end},
                           {"replaced_in_the_midst", replaced_in_the_midst}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
