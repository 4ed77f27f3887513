// Threads that keep to a few hot pages while others churn through all of them, so that hot pages are evicted and come
// back under their hands: umap_churn FILE MEBIBYTES. Hot pages are written by one thread each; the churned ones never
// change. A sparse store beside the file is churned the same way.
#include <fcntl.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "umap/store/SparseStore.h"
#include "umap/umap.h"

namespace {

constexpr std::size_t kHotPages = 4, kReaders = 3, kWrites = 20'000;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

uint64_t word_of(std::size_t i) { return i * 0x9E3779B97F4A7C15u; }

// Words that were not what was last written to them.
uint64_t churn(uint64_t* words, std::size_t count) {
  const std::size_t page_words = umapcfg_get_umap_page_size() / 8, hot_words = kHotPages * page_words;
  for (std::size_t i = 0; i < count; ++i) words[i] = word_of(i);
  std::atomic<uint64_t> wrong{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kHotPages; ++t)
    threads.emplace_back([&, t] {
      uint64_t* mine = words + t * page_words;
      for (uint64_t round = 1; round <= kWrites; ++round) {
        std::size_t at = round * 7 % page_words;
        mine[at] = round;
        wrong += mine[at] != round;
      }
    });
  std::vector<std::thread> readers;
  for (std::size_t t = 0; t < kReaders; ++t)
    readers.emplace_back([&, t] {
      uint64_t state = t + 1;
      while (!over.load()) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        std::size_t at = hot_words + (state >> 20) % (count - hot_words);
        wrong += words[at] != word_of(at);
      }
    });
  for (std::thread& thread : threads) thread.join();
  over = true;
  for (std::thread& thread : readers) thread.join();
  for (std::size_t i = hot_words; i < count; ++i) wrong += words[i] != word_of(i);
  return wrong;
}

uint64_t churn_mapping(void* data, std::size_t bytes) {
  if (data == UMAP_FAILED) fail("umap");
  uint64_t wrong = churn(static_cast<uint64_t*>(data), bytes / 8);
  if (umap_flush() != 0) fail("umap_flush");
  if (uunmap(data, bytes) != 0) fail("uunmap");
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "umap_churn FILE MEBIBYTES\n"), 2;
  const std::string path = argv[1], sparse = path + ".sparse";
  const std::size_t bytes = std::strtoull(argv[2], nullptr, 10) << 20;
  int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR, 0600);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) fail(path.c_str());
  uint64_t wrong = churn_mapping(umap(nullptr, bytes, PROT_READ | PROT_WRITE, UMAP_PRIVATE, fd, 0), bytes);
  ::close(fd);
  ::unlink(path.c_str());

  std::filesystem::remove_all(sparse);
  auto* store = new Umap::SparseStore(bytes, umapcfg_get_umap_page_size(), sparse, bytes / 8);
  wrong +=
      churn_mapping(Umap::umap_ex(nullptr, bytes, PROT_READ | PROT_WRITE, UMAP_PRIVATE, -1, 0, store), bytes);
  if (store->close_files() != 0) fail("close_files");
  delete store;
  std::filesystem::remove_all(sparse);
  std::printf("wrong %llu\n", static_cast<unsigned long long>(wrong));
  return wrong == 0 ? 0 : 1;
}
