// Threads write blocks all over a file for some seconds, more than may be dirty; then every block is read again.
//
//   flushed FILE SECONDS      prints how many blocks are wrong
//
// A block holds its number, and who wrote it, in all of its words: one that is half of another write, or another
// block's, is wrong.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr uint64_t kBlocks = 16 * 1024;
using Block = std::array<uint64_t, 512>;

bool write_block(int file, uint64_t number, uint64_t writer) {
  Block block;
  block.fill(number << 8 | writer);
  return pwrite(file, block.data(), sizeof block, static_cast<off_t>(number * sizeof block)) == sizeof block;
}

bool is_right(int file, uint64_t number) {
  Block block;
  if (pread(file, block.data(), sizeof block, static_cast<off_t>(number * sizeof block)) != sizeof block)
    return false;
  for (const uint64_t word : block)
    if (word != block[0]) return false;
  return block[0] >> 8 == number;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file < 0) return 1;
  for (uint64_t number = 0; number < kBlocks; ++number)
    if (!write_block(file, number, 0)) return 1;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::atof(argv[2]));
  std::atomic<uint64_t> failed{0};
  std::vector<std::thread> threads;
  for (uint64_t writer = 1; writer <= 4; ++writer)
    threads.emplace_back([&, writer] {
      std::mt19937_64 random(writer);
      while (std::chrono::steady_clock::now() < end) failed += !write_block(file, random() % kBlocks, writer);
    });
  for (std::thread& thread : threads) thread.join();
  if (fsync(file) != 0) ++failed;
  for (uint64_t number = 0; number < kBlocks; ++number) failed += !is_right(file, number);
  std::printf("%llu wrong\n", static_cast<unsigned long long>(failed.load()));
  return close(file);
}
