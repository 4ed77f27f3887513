// Memory that streams go through, for extents: each word says where it is and how often it has been changed.
//   extents stream MIB ROUNDS    each round goes through all of it and changes every other one of its pages
//   extents threads MIB ROUNDS   so do four threads, each through all of it, from places of their own, with random
//                                changes between
//   extents forks MIB ROUNDS     as stream; amid each round it forks, and its child looks at all of it while another
//                                thread of the parent goes on using one page
//   extents ranges MIB ROUNDS    between the rounds some of it is given up, protected or mapped anew
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t kPage = 4096, kWords = kPage / sizeof(uint64_t);
using Word = std::atomic<uint64_t>;

uint64_t first_of(size_t page) { return page << 24; }

void fill(Word* words, size_t pages) {
  for (size_t page = 0; page < pages; ++page)
    for (size_t i = 0; i < kWords; ++i)
      words[page * kWords + i].store(first_of(page), std::memory_order_relaxed);
}

// Adds to each page of the pass `mask`, at both of its ends.
void change(Word* words, size_t page) {
  words[page * kWords].fetch_add(1, std::memory_order_relaxed);
  words[page * kWords + kWords - 1].fetch_add(1, std::memory_order_relaxed);
}

size_t wrong(const Word* words, size_t page, uint64_t changes) {
  size_t found = 0;
  for (size_t i = 0; i < kWords; ++i) {
    const bool is_end = i == 0 || i == kWords - 1;
    found +=
        words[page * kWords + i].load(std::memory_order_relaxed) != first_of(page) + (is_end ? changes : 0);
  }
  return found;
}

size_t stream(Word* words, size_t pages, int rounds) {
  for (int round = 0; round < rounds; ++round)
    for (size_t page = 0; page < pages; ++page) {
      if (words[page * kWords + 100].load(std::memory_order_relaxed) != first_of(page)) return 1;
      if (page % 2 == 0) change(words, page);
    }
  size_t found = 0;
  for (size_t page = 0; page < pages; ++page)
    found += wrong(words, page, page % 2 == 0 ? static_cast<uint64_t>(rounds) : 0);
  return found;
}

// How far a round had come when its process forked: pages up to there have one change more.
size_t looked_at(const Word* words, size_t pages, size_t used, size_t come, uint64_t rounds) {
  size_t found = 0;
  for (size_t page = 0; page < pages; ++page)
    if (page != used) found += wrong(words, page, page % 2 == 0 ? rounds + (page < come) : 0);
  return found;
}

size_t forks(Word* words, size_t pages, int rounds) {
  const size_t used = pages / 2 + 1;  // by the other thread
  std::atomic<bool> stops{false};
  uint64_t uses = 0;
  std::thread user([&] {
    for (; !stops; ++uses, usleep(20)) change(words, used);
  });
  size_t found = 0;
  for (int round = 0; round < rounds; ++round) {
    for (size_t page = 0; page < pages; ++page) {
      if (page == pages / 3 * 2) {
        const pid_t child = fork();
        if (child == 0) _exit(looked_at(words, pages, used, page, static_cast<uint64_t>(round)) == 0 ? 0 : 1);
        int status = 0;
        if (waitpid(child, &status, 0) != child || status != 0) ++found;
      }
      if (page % 2 == 0) change(words, page);
    }
    usleep(round == 0 ? 1'100'000 : 0);
  }
  stops = true;
  user.join();
  for (size_t page = 0; page < pages; ++page)
    found += page != used && words[page * kWords + 100] != first_of(page);
  return found + looked_at(words, pages, used, 0, static_cast<uint64_t>(rounds)) + wrong(words, used, uses);
}

size_t threads(Word* words, size_t pages, int rounds) {
  constexpr size_t kThreads = 4;
  std::vector<std::atomic<uint32_t>> changes(pages);
  std::vector<std::thread> all;
  for (size_t t = 0; t < kThreads; ++t)
    all.emplace_back([&, t] {
      uint64_t random = t + 1;
      for (size_t step = 0; step < pages * static_cast<size_t>(rounds); ++step) {
        size_t page = (step + pages / kThreads * t) % pages;
        random = random * 6364136223846793005u + 1442695040888963407u;
        if (random >> 60 == 0) page = (random >> 20) % pages;
        if (random >> 33 & 1) continue;
        change(words, page);
        changes[page].fetch_add(1, std::memory_order_relaxed);
      }
    });
  for (std::thread& thread : all) thread.join();
  size_t found = 0;
  for (size_t page = 0; page < pages; ++page) found += wrong(words, page, changes[page].load());
  return found;
}

size_t ranges(Word* words, size_t pages, int rounds) {
  size_t found = stream(words, pages, 1);
  for (int round = 1; round < rounds; ++round) {
    const size_t from = pages / 4 + static_cast<size_t>(round) * 37, count = 700;
    auto* const at = reinterpret_cast<char*>(&words[from * kWords]);
    if (round % 3 == 0) {
      if (madvise(at, count * kPage, MADV_DONTNEED) != 0) return 1;
    } else if (round % 3 == 1) {
      if (mprotect(at, count * kPage, PROT_READ) != 0) return 1;
      for (size_t page = from; page < from + count; ++page)
        found += wrong(words, page, page % 2 == 0 ? 1 : 0);
      if (mprotect(at, count * kPage, PROT_READ | PROT_WRITE) != 0) return 1;
    } else if (mmap(at, count * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                    0) != at) {
      return 1;
    }
    for (size_t page = from; page < from + count && round % 3 != 1; ++page)
      for (size_t i = 0; i < kWords; ++i) {
        found += words[page * kWords + i].load(std::memory_order_relaxed) != 0;
        words[page * kWords + i].store(first_of(page) + (page % 2 == 0 && (i == 0 || i == kWords - 1)));
      }
    for (size_t page = 0; page < pages; ++page) found += wrong(words, page, page % 2 == 0 ? 1 : 0);
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const size_t bytes = std::strtoull(argv[2], nullptr, 10) << 20;
  const int rounds = std::atoi(argv[3]);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto* words = static_cast<Word*>(memory);
  fill(words, bytes / kPage);
  const std::string what = argv[1];
  const size_t found = what == "stream"    ? stream(words, bytes / kPage, rounds)
                       : what == "forks"   ? forks(words, bytes / kPage, rounds)
                       : what == "threads" ? threads(words, bytes / kPage, rounds)
                                           : ranges(words, bytes / kPage, rounds);
  std::printf("wrong %zu\n", found);
}
