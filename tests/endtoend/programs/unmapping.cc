// Threads that read memory which another thread unmaps and maps again meanwhile. What they read is of the mapping that
// is there, or they get SIGSEGV; the mappings beside it notice nothing.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "parts.h"
#include "print.h"
#ifdef WITH_SPILLWAY
#include <spillway/spillway.h>
#endif

namespace {

constexpr size_t kPageWords = 4096 / sizeof(uint64_t);
constexpr size_t kPages = 2560;  // 10 MiB, more than the cap
constexpr size_t kBytes = kPages * 4096;
constexpr int kReaders = 4;
// Only the first so many are stored to where stores are checked, so that a round is short.
constexpr size_t kStoredPages = 256;

uint64_t word_of(uint64_t round, size_t page) { return (round << 32) | (page + 1); }

thread_local sigjmp_buf t_back;
thread_local volatile bool t_reading = false;

void jump_back(int) {
  if (t_reading) siglongjmp(t_back, 1);
  signal(SIGSEGV, SIG_DFL);  // no fault that is expected
}

__attribute__((noinline)) bool try_read(const uint64_t* word, uint64_t* value) {
  const bool may_read = sigsetjmp(t_back, 1) == 0;
  t_reading = may_read;
  if (may_read) *value = *const_cast<const volatile uint64_t*>(word);
  t_reading = false;
  return may_read;
}

void catch_faults() {
  struct sigaction action{};
  action.sa_handler = jump_back;
  sigaction(SIGSEGV, &action, nullptr);
}

uint64_t* map_memory(int file) {
  const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* got = mmap(nullptr, kBytes, PROT_READ | (file < 0 ? PROT_WRITE : 0), flags, file, 0);
  if (got == MAP_FAILED) std::abort();
  return static_cast<uint64_t*>(got);
}

int make_file() {
  char name[] = "mapped.XXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  std::vector<uint64_t> page(kPageWords);
  for (size_t p = 0; p < kPages; ++p) {
    page[0] = page[kPageWords - 1] = word_of(0, p);
    if (write(file, page.data(), 4096) != 4096) std::abort();
  }
  return file;
}

struct Shared {
  std::atomic<uint64_t*> words{nullptr};
  std::atomic<uint64_t> round{0};
  std::atomic<uint64_t> changes{0};  // odd: the mapping is being replaced
  std::atomic<bool> stop{false}, moved{false};
  std::atomic<uint64_t> reads{0}, wrong{0};
};

// Of a file: what is in it, but while its mapping is being replaced: somebody else's memory may lie there then, the
// runtime's own too. Of memory: zero, or what was
// stored in this round or a later one; nothing of an earlier.
void read_on(Shared& shared, int reader, bool is_file) {
  uint64_t random = 88172645463325252u + static_cast<uint64_t>(reader);
  size_t place = 0, value_errors = 0;
  for (uint64_t i = 0; !shared.stop; ++i) {
    // Partly in order, so that blocks are read ahead.
    place = i % 97 == 0 ? next_random(&random) % kPages : (place + 1) % kPages;
    const uint64_t round = shared.round, changes = shared.changes;
    uint64_t value = 0;
    if (!try_read(shared.words + place * kPageWords, &value)) continue;
    ++shared.reads;
    const bool right_page = (value & 0xFFFF'FFFFu) == place + 1;
    const bool settled = changes % 2 == 0 && shared.changes == changes;
    value_errors += is_file ? settled && !right_page
                            : value != 0 && ((!right_page && !shared.moved) || value >> 32 < round);
  }
  shared.wrong += value_errors;
}

// Adds to the words of a mapping of its own and finds what it has added.
void use_neighbour(uint64_t* words, Shared& shared) {
  uint64_t errors = 0;
  std::vector<uint32_t> expected(kPages);
  for (uint64_t round = 1; !shared.stop; ++round)
    for (size_t page = 0; page < kPages && !shared.stop; page += 3) {
      uint64_t& word = words[page * kPageWords + page % kPageWords];
      errors += word != expected[page];
      word = expected[page] = static_cast<uint32_t>(round);
    }
  shared.wrong += errors;
}

int unmap_while_read(long rounds, int file) {
  catch_faults();
  Shared shared;
  uint64_t* before = map_memory(-1);
  shared.words = map_memory(file);
  uint64_t* after = map_memory(-1);
  std::vector<std::thread> threads;
  for (int reader = 0; reader < kReaders; ++reader)
    threads.emplace_back([&shared, reader, file] { read_on(shared, reader, file >= 0); });
  threads.emplace_back([=, &shared] { use_neighbour(before, shared); });
  threads.emplace_back([=, &shared] { use_neighbour(after, shared); });
  for (long round = 1; round <= rounds; ++round) {
    const uint64_t reads = shared.reads;
    uint64_t* words = shared.words;
    if (file < 0)
      for (size_t page = 0; page < kStoredPages; ++page)
        words[page * kPageWords] = word_of(static_cast<uint64_t>(round), page);
    while (shared.reads < reads + 300) std::this_thread::yield();
    ++shared.changes;
    munmap(words, kBytes);
    uint64_t* again = map_memory(file);
    if (again != words) shared.moved = true;
    shared.words = again;
    ++shared.changes;
    shared.round = static_cast<uint64_t>(round) + 1;
    for (size_t page = static_cast<size_t>(round) % 5; page < kStoredPages; page += 5)
      shared.wrong += again[page * kPageWords] != (file < 0 ? 0 : word_of(0, page));
  }
  shared.stop = true;
  for (auto& thread : threads) thread.join();
  print_sum("wrong", shared.wrong);
  return 0;
}

int memory(long rounds) { return unmap_while_read(rounds, -1); }
int file(long rounds) { return unmap_while_read(rounds, make_file()); }

#ifdef WITH_SPILLWAY
// Nobody may use a region while it goes; but what was asked for ahead of need is still on its way.
int region(long rounds) {
  const int made = open("region", O_RDWR | O_CREAT, 0600);
  std::vector<uint64_t> page(kPageWords);
  for (size_t p = 0; p < kPages; ++p) {
    page[0] = word_of(0, p);
    if (write(made, page.data(), 4096) != 4096) return 1;
  }
  Shared shared;
  uint64_t* beside = map_memory(-1);
  std::thread neighbour([&] { use_neighbour(beside, shared); });
  for (long round = 0; round < rounds; ++round) {
    void* got = nullptr;
    if (spw_map("file:region", 0, kBytes, SPW_MAP_READ_ONLY, 0, &got) != 0) std::abort();
    const auto* words = static_cast<const uint64_t*>(got);
    std::vector<std::thread> readers;
    for (size_t reader = 0; reader < kReaders; ++reader)
      readers.emplace_back([=, &shared] {
        const size_t first = (static_cast<size_t>(round) * 64 + reader * 512) % (kPages - 200);
        for (size_t p = first; p < first + 100; ++p) shared.wrong += words[p * kPageWords] != word_of(0, p);
        spw_prefetch(const_cast<uint64_t*>(words) + (first + 100) * kPageWords, 100 * 4096);
      });
    for (auto& reader : readers) reader.join();
    if (spw_unmap(got) != 0) std::abort();
  }
  shared.stop = true;
  neighbour.join();
  print_sum("wrong", shared.wrong);
  return 0;
}
#endif

constexpr Part kParts[] = {
    {"memory", memory},
    {"file", file},
#ifdef WITH_SPILLWAY
    {"region", region},
#endif
};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
