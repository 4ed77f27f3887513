// Memory that fits at first: threads work on theirs while it stops fitting, ranges come and go, files are mapped and
// stored to. What is printed does not depend on when that happens.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "parts.h"
#include "print.h"

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kWords = 96 * 1024;  // of a worker: 768 KiB
constexpr size_t kMoreBytes = size_t{1} << 20;

struct Data {
  std::vector<uint64_t> words = std::vector<uint64_t>(kWords);
  std::vector<uint32_t> next = std::vector<uint32_t>(kWords);  // one circle through all places

  explicit Data(uint64_t seed) {
    std::vector<uint32_t> order(kWords);
    for (size_t i = 0; i < kWords; ++i) {
      words[i] = i * seed;
      order[i] = static_cast<uint32_t>(i);
    }
    for (size_t i = kWords - 1; i > 0; --i) std::swap(order[i], order[next_random(&seed) % (i + 1)]);
    for (size_t i = 0; i < kWords; ++i) next[order[i]] = order[(i + 1) % kWords];
  }
  uint64_t sum() const {
    uint64_t result = 0;
    for (uint64_t word : words) result = mix(result, word);
    return result;
  }
};

// Each kind of work takes itself back when it is done twice, so that any even number of rounds ends in the same place.
using Work = void (*)(Data& data, const std::atomic<bool>& go_on);

void update_at_random(Data& data, const std::atomic<bool>&) {
  uint64_t random = 12345;
  for (size_t i = 0; i < 4 * kWords; ++i) {
    const uint64_t r = next_random(&random);
    data.words[r % kWords] ^= r;
  }
}

void nest_loops(Data& data, const std::atomic<bool>&) {
  constexpr size_t kRow = 1024;
  for (size_t row = 0; row < kWords / kRow; ++row)
    for (size_t step = 1; step <= 3; ++step) {
      for (size_t i = 0; i < kRow; i += step) data.words[row * kRow + i] ^= i * step;
      for (size_t i = 0; i < kWords; i += kRow) data.words[i + row] ^= row + step;
    }
}

__attribute__((noinline)) uint64_t change_halves(uint64_t* begin, uint64_t* end, uint64_t depth) {
  if (end - begin < 3) {
    for (uint64_t* word = begin; word < end; ++word) *word ^= depth;
    return depth;
  }
  uint64_t* middle = begin + (end - begin) / 2;
  *middle ^= depth * 77;
  return change_halves(begin, middle, depth + 1) ^ change_halves(middle, end, depth + 2);
}

void recurse(Data& data, const std::atomic<bool>&) {
  data.words[0] ^= change_halves(data.words.data() + 1, data.words.data() + kWords, 1);
}

// The search is a loop that counts to nothing, inside another.
void search(Data& data, const std::atomic<bool>&) {
  for (size_t i = 0; i < 3000; ++i) {
    uint32_t at = static_cast<uint32_t>(i * 31 % kWords);
    size_t steps = 0;
    while (at % 97 != i % 97) {
      at = data.next[at];
      ++steps;
    }
    data.words[at] ^= i + steps;
  }
}

// One that does not end before memory does, and never comes to the loop around it.
void walk_on(Data& data, const std::atomic<bool>& go_on) {
  for (size_t i = 0; i < 2; ++i) {
    uint32_t at = 5;
    while (go_on.load(std::memory_order_relaxed) || at != 5) at = data.next[at];
    data.words[i] ^= at + i;
  }
}

__attribute__((noinline)) void throw_at(uint64_t* word, size_t i) {
  *word ^= i;
  if (i % 64 == 3) throw std::runtime_error(std::to_string(i));
}

void throw_and_catch(Data& data, const std::atomic<bool>&) {
  for (size_t i = 0; i < kWords; ++i) {
    try {
      throw_at(&data.words[data.next[i]], i);
    } catch (const std::runtime_error& error) {
      data.words[i] ^= static_cast<uint64_t>(std::stoul(error.what()));
    }
  }
}

thread_local jmp_buf t_back;

__attribute__((noinline)) void jump_from(Data& data, size_t from) {
  for (size_t i = from;; i = data.next[i]) {
    data.words[i] ^= from;
    if (i % 32 == 7) longjmp(t_back, 1);
  }
}

void jump(Data& data, const std::atomic<bool>&) {
  for (volatile size_t i = 0; i < 2000; i = i + 1)
    if (setjmp(t_back) == 0) jump_from(data, i * 13);
}

constexpr Work kWorks[] = {update_at_random, nest_loops, recurse, search, walk_on, throw_and_catch, jump};
constexpr size_t kWorkCount = sizeof kWorks / sizeof *kWorks;

// Static, so that it is not managed.
std::atomic<bool> g_go_on{true};
std::atomic<size_t> g_rounds[kWorkCount];

// `more_mib` is taken while threads work.
int outgrow(long more_mib) {
  std::vector<Data> data;
  for (size_t w = 0; w < kWorkCount; ++w) data.emplace_back(w + 3);
  uint64_t before = 0;
  for (const Data& d : data) before = mix(before, d.sum());
  std::vector<std::thread> threads;
  for (size_t w = 0; w < kWorkCount; ++w)
    threads.emplace_back([&data, w] {
      do {
        kWorks[w](data[w], g_go_on);
        kWorks[w](data[w], g_go_on);
        ++g_rounds[w];
      } while (g_go_on);
    });
  for (size_t w = 0; w < kWorkCount; ++w)
    while (kWorks[w] != walk_on && g_rounds[w] == 0) std::this_thread::yield();
  std::vector<std::vector<uint64_t>> more;
  for (long i = 0; i < more_mib; ++i)
    more.emplace_back(kMoreBytes / sizeof(uint64_t), static_cast<uint64_t>(i));
  uint64_t sum = 0;
  for (int round = 0; round < 2; ++round)
    for (auto& piece : more)
      for (size_t i = 0; i < piece.size(); i += 512) sum = mix(sum, piece[i] += i);
  g_go_on = false;
  for (std::thread& thread : threads) thread.join();
  uint64_t after = 0;
  for (const Data& d : data) after = mix(after, d.sum());
  print_sum("data", after);
  print_sum("more", sum);
  return before == after ? 0 : 1;
}

// ---- Ranges that come and go ----

struct Range {
  unsigned char* at = nullptr;
  size_t pages = 0;
  unsigned char marks[128] = {};  // what each page was filled with
};

// Unmanaged, and one a thread.
constexpr size_t kChurners = 3, kRanges = 24;
Range g_ranges[kChurners][kRanges];

size_t wrong_in(const Range& range) {
  size_t wrong = 0;
  for (size_t page = 0; page < range.pages; ++page) {
    const unsigned char* bytes = range.at + page * kPage;
    for (size_t i = 0; i < kPage; i += 64) wrong += bytes[i] != range.marks[page];
    wrong += bytes[kPage - 1] != range.marks[page];
  }
  return wrong;
}

void mark(Range& range, size_t page, uint64_t random) {
  range.marks[page] = static_cast<unsigned char>(random);
  std::memset(range.at + page * kPage, range.marks[page], kPage);
}

void map(Range& range, uint64_t random) {
  range.pages = 1 + random % 100;
  std::memset(range.marks, 0, sizeof range.marks);
  void* got = mmap(nullptr, range.pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) std::abort();
  range.at = static_cast<unsigned char*>(got);
}

void forget_pages(Range& range, uint64_t random) {
  const size_t first = random % range.pages, count = 1 + (random >> 32) % (range.pages - first);
  if (madvise(range.at + first * kPage, count * kPage, MADV_DONTNEED) != 0) std::abort();
  std::memset(range.marks + first, 0, count);
}

void resize(Range& range, uint64_t random) {
  const size_t pages = 1 + random % 120;
  void* got = mremap(range.at, range.pages * kPage, pages * kPage, MREMAP_MAYMOVE);
  if (got == MAP_FAILED) std::abort();
  range.at = static_cast<unsigned char*>(got);
  if (pages > range.pages) std::memset(range.marks + range.pages, 0, pages - range.pages);
  range.pages = pages;
}

size_t use_heap(uint64_t random) {
  const size_t bytes = 1 + random % 300'000;
  auto* zeros = static_cast<unsigned char*>(std::calloc(bytes, 1));
  size_t wrong = 0;
  for (size_t i = 0; i < bytes; i += 100) wrong += zeros[i] != 0;
  std::memset(zeros, 7, bytes);
  zeros = static_cast<unsigned char*>(std::realloc(zeros, bytes * 2));
  for (size_t i = 0; i < bytes; i += 100) wrong += zeros[i] != 7;
  std::memset(zeros, 9, bytes * 2);
  std::free(zeros);
  return wrong;
}

void churn_ranges(Range* ranges, uint64_t random, long steps, std::atomic<size_t>& all_wrong) {
  size_t wrong = 0;
  for (long step = 0; step < steps; ++step) {
    Range& range = ranges[next_random(&random) % kRanges];
    const uint64_t r = next_random(&random);
    if (range.pages == 0) map(range, r);
    switch (next_random(&random) % 8) {
      case 0:
        wrong += wrong_in(range);
        munmap(range.at, range.pages * kPage);
        range.pages = 0;
        break;
      case 1:  // the end alone
        if (range.pages > 1) munmap(range.at + --range.pages * kPage, kPage);
        break;
      case 2:
        resize(range, r);
        break;
      case 3:
        forget_pages(range, r);
        break;
      case 4:
        wrong += use_heap(r);
        break;
      case 5:
        wrong += wrong_in(range);
        break;
      default:
        for (size_t page = r % 7; page < range.pages; page += 1 + r % 5) mark(range, page, r >> 8);
    }
  }
  for (size_t i = 0; i < kRanges; ++i) wrong += wrong_in(ranges[i]);
  all_wrong += wrong;
}

int churn(long steps) {
  static std::atomic<size_t> wrong;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kChurners; ++t)
    threads.emplace_back([t, steps] { churn_ranges(g_ranges[t], t + 17, steps, wrong); });
  for (std::thread& thread : threads) thread.join();
  print_sum("wrong", wrong);
  return wrong == 0 ? 0 : 1;
}

// ---- Mapped files ----

constexpr size_t kFileBytes = 3'000'123;  // ends within a page

int make_file(const char* name) {
  const int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  std::string bytes(kFileBytes, '\0');
  uint64_t random = 99;
  for (char& byte : bytes) byte = static_cast<char>(next_random(&random));
  if (write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  return file;
}

void print_file(const char* what, int file) {
  static unsigned char bytes[2 * kFileBytes];
  const ssize_t got = pread(file, bytes, sizeof bytes, 0);
  uint64_t sum = 0;
  for (ssize_t i = 0; i < got; ++i) sum = mix(sum, bytes[i]);
  std::printf("%zd bytes ", got);
  print_sum(what, sum);
}

unsigned char* map_file(int file, int protection, int flags) {
  void* got = mmap(nullptr, kFileBytes, protection, flags, file, 0);
  if (got == MAP_FAILED) std::abort();
  return static_cast<unsigned char*>(got);
}

// Threads take turns at bytes, so that they share every block.
void store_to(unsigned char* bytes, size_t step, unsigned add) {
  constexpr size_t kThreads = 3;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([=] {
      for (size_t i = t * step; i < kFileBytes; i += kThreads * step)
        bytes[i] = static_cast<unsigned char>(bytes[i] * 3 + add);
    });
  for (std::thread& thread : threads) thread.join();
}

uint64_t sum_of(const unsigned char* bytes) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kFileBytes; ++i) sum = mix(sum, bytes[i]);
  return sum;
}

// The second mapping is left to the end of the process.
int shared_file(long) {
  const int file = make_file("shared.data");
  unsigned char* bytes = map_file(file, PROT_READ | PROT_WRITE, MAP_SHARED);
  print_sum("mapped", sum_of(bytes));
  for (unsigned round = 0; round < 3; ++round) {
    store_to(bytes, 1 + 1000 * round, round + 5);
    if (msync(bytes, kFileBytes, MS_SYNC) != 0) std::abort();
    print_file("synced", file);
  }
  store_to(bytes, 7, 11);
  bytes[kFileBytes] = 1;  // behind its end, which nobody sees
  munmap(bytes, kFileBytes);
  print_file("unmapped", file);
  const int other = make_file("left.data");
  store_to(map_file(other, PROT_READ | PROT_WRITE, MAP_SHARED), 5, 3);
  return 0;
}

int private_file(long) {
  const int file = make_file("private.data");
  unsigned char* bytes = map_file(file, PROT_READ | PROT_WRITE, MAP_PRIVATE);
  const unsigned char* same = map_file(file, PROT_READ, MAP_SHARED);
  store_to(bytes, 3, 1);
  print_sum("changed", sum_of(bytes));
  print_sum("read", sum_of(same));
  const size_t half = kFileBytes / 2 / kPage * kPage;
  if (madvise(bytes + kPage, half, MADV_DONTNEED) != 0) std::abort();
  print_sum("half of it", sum_of(bytes));
  store_to(bytes, 900, 2);
  print_sum("changed again", sum_of(bytes));
  msync(bytes, kFileBytes, MS_SYNC);
  munmap(bytes, kFileBytes);
  print_file("file", file);
  return 0;
}

// What was synced and not stored to since is not written again: another writer's bytes stay.
int written_between(long) {
  const int file = make_file("between.data");
  unsigned char* bytes = map_file(file, PROT_READ | PROT_WRITE, MAP_SHARED);
  for (size_t i = 0; i < kFileBytes; i += kPage) bytes[i] = 1;
  if (msync(bytes, kFileBytes, MS_SYNC) != 0) std::abort();
  const std::string theirs(100'000, 'x');
  if (pwrite(file, theirs.data(), theirs.size(), 1'000'000) != static_cast<ssize_t>(theirs.size()))
    std::abort();
  bytes[2 * kPage] = 2;
  if (msync(bytes, kFileBytes, MS_SYNC) != 0) std::abort();
  munmap(bytes, kFileBytes);
  print_file("both", file);
  return 0;
}

// ---- Signals ----

constexpr size_t kCells = size_t{1} << 21;  // 16 MiB
uint64_t* volatile g_cells;
volatile uint64_t g_alarms, g_place = 7;

// Touches what nobody has touched before.
void on_alarm(int) {
  for (int i = 0; i < 4; ++i) {
    g_place = g_place * 6364136223846793005u + 1;
    g_cells[(g_place >> 33) % kCells] += 1;
  }
  g_alarms = g_alarms + 1;
}

uint64_t* map_words(size_t bytes) {
  void* got = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) std::abort();
  return static_cast<uint64_t*>(got);
}

// Alarms come while faults are served.
int alarms(long mappings) {
  constexpr size_t kMapped = size_t{1} << 21;
  g_cells = map_words(kCells * sizeof(uint64_t));
  struct sigaction action{};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 100}, {0, 100}}, never{};
  uint64_t sum = 0;
  for (long i = 0; i < mappings; ++i) {
    uint64_t* words = map_words(kMapped * sizeof(uint64_t));
    setitimer(ITIMER_REAL, &often, nullptr);
    for (size_t place = 0; place < kMapped; place += 512) words[place] = place;
    for (size_t place = 0; place < kMapped; place += 512) sum = mix(sum, words[place]);
    setitimer(ITIMER_REAL, &never, nullptr);
  }
  uint64_t cells = 0;
  for (size_t i = 0; i < kCells; ++i) cells += g_cells[i];
  print_sum("words", sum);
  print_sum("wrong", cells != 4 * g_alarms || cells == 0);
  return 0;
}

constexpr Part kParts[] = {
    {"alarms", alarms},           {"outgrow", outgrow},           {"churn", churn},
    {"shared_file", shared_file}, {"private_file", private_file}, {"written_between", written_between}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
