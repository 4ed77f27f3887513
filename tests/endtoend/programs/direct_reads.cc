// Direct reads into managed memory, of more than the cap, while
// another thread needs memory: what was read is there afterwards.
//   direct_reads pread|read|readv|aio
#include <aio.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t kFileBytes = 24 << 20;
constexpr size_t kPageWords = 512;
constexpr int kRounds = 2;

uint64_t word(size_t i) { return i * 0x9E3779B97F4A7C15u + 1; }

// In the directory of the program's start; -1: direct I/O is not to be had there.
int make_file() {
  const int fd = open("direct", O_CREAT | O_RDWR | O_TRUNC, 0600);
  std::vector<uint64_t> words(1 << 17);
  for (size_t at = 0; at < kFileBytes; at += words.size() * 8) {
    for (size_t i = 0; i < words.size(); ++i) words[i] = word(at / 8 + i);
    if (write(fd, words.data(), words.size() * 8) < 0) std::perror("write");
  }
  fsync(fd);
  close(fd);
  return open("direct", O_RDONLY | O_DIRECT);
}

ssize_t read_vectored(int fd, char* to, size_t bytes, off_t at) {
  iovec pieces[] = {{to, bytes / 2 / 4096 * 4096},
                    {to + bytes / 2 / 4096 * 4096, bytes - bytes / 2 / 4096 * 4096}};
  return preadv(fd, pieces, 2, at);
}

ssize_t read_asynchronously(int fd, char* to, size_t bytes, off_t at) {
  aiocb block{};
  block.aio_fildes = fd;
  block.aio_buf = to;
  block.aio_nbytes = std::min<size_t>(bytes, 1 << 20);
  block.aio_offset = at;
  if (aio_read(&block) != 0) return -1;
  const aiocb* list[] = {&block};
  while (aio_error(&block) == EINPROGRESS) aio_suspend(list, 1, nullptr);
  return aio_return(&block);
}

ssize_t read_some(const std::string& way, int fd, char* to, size_t bytes, off_t at) {
  if (way == "pread") return pread(fd, to, bytes, at);
  if (way == "read") return lseek(fd, at, SEEK_SET) < 0 ? -1 : read(fd, to, bytes);
  if (way == "readv") return read_vectored(fd, to, bytes, at);
  return read_asynchronously(fd, to, bytes, at);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  const int fd = make_file();
  if (fd < 0) {
    std::puts("no direct I/O here");
    return 0;
  }
  auto* buffer = static_cast<uint64_t*>(aligned_alloc(4096, kFileBytes));
  std::vector<uint64_t> other(kFileBytes / 8);
  std::atomic<bool> stop{false};
  std::thread needs_memory([&] {
    for (size_t i = 0; !stop; i = (i + kPageWords) % other.size()) ++other[i];
  });
  size_t wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < kFileBytes / 8; i += kPageWords) buffer[i] = 0;
    for (size_t at = 0; at < kFileBytes;) {
      char* to = reinterpret_cast<char*>(buffer) + at;
      const ssize_t got = read_some(arguments[1], fd, to, kFileBytes - at, static_cast<off_t>(at));
      if (got <= 0) {
        std::perror("reading");
        break;
      }
      at += static_cast<size_t>(got);
    }
    for (size_t i = 0; i < kFileBytes / 8; ++i) wrong += buffer[i] != word(i);
  }
  stop = true;
  needs_memory.join();
  std::printf("%zu words are wrong\n", wrong);
  return 0;
}
