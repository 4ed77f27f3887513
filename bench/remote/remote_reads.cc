// A client of bench/remote.py: random reads, by some threads, of a database on a store that other clients read, too,
// mapped as a region. Run by `spillway run`, which gives it its memory.
//
//   remote_reads make STORE BYTES
//       writes the database: each word is a function of where it is
//   remote_reads read STORE BYTES THREADS READS SEED
//       maps it, prints "ready" and waits for a line; then each thread reads a word of each of READS random pages.
//       Prints JSON: when it began and ended by the monotonic clock, the sum of all words and what it should be
//
// Threads: each has its own generator and sums.
#include <spillway/spillway.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr uint64_t kPageBytes = 4096, kPageWords = kPageBytes / sizeof(uint64_t);

struct Sums {
  uint64_t read = 0, expected = 0;
};

// Of the word at `index`. (The finalizer of splitmix64.)
uint64_t word_at(uint64_t index) {
  uint64_t mixed = index + 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return mixed ^ (mixed >> 31);
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "remote_reads: %s: %s\n", what, spw_error_message());
  std::exit(1);
}

uint64_t* map(const char* store, uint64_t bytes, unsigned flags) {
  void* address = nullptr;
  if (spw_map(store, 0, bytes, flags, 0, &address) != 0) fail(store);
  return static_cast<uint64_t*>(address);
}

int make(const char* store, uint64_t bytes) {
  uint64_t* words = map(store, bytes, SPW_MAP_SHARED);
  for (uint64_t i = 0; i < bytes / sizeof(uint64_t); ++i) words[i] = word_at(i);
  if (spw_unmap(words) != 0) fail("unmap");
  return 0;
}

void read_some(const volatile uint64_t* words, uint64_t pages, uint64_t reads, uint64_t seed, Sums& sums) {
  std::mt19937_64 random(seed);
  Sums mine;
  for (uint64_t i = 0; i < reads; ++i) {
    const uint64_t chosen = random();
    const uint64_t index = chosen % pages * kPageWords + (chosen >> 48) % kPageWords;
    mine.read += words[index];
    mine.expected += word_at(index);
  }
  sums = mine;
}

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int read(const char* store, uint64_t bytes, uint64_t threads, uint64_t reads, uint64_t seed) {
  const uint64_t* words = map(store, bytes, SPW_MAP_READ_ONLY);
  // A read brings in its page and no other.
  if (spw_advise(words, bytes, SPW_RANDOM) != 0) fail("advise");
  std::puts("ready");
  std::fflush(stdout);
  if (std::getchar() == EOF) return 1;  // who would have started it is gone
  const int64_t began_ns = now_ns();
  std::vector<Sums> sums(threads);
  std::vector<std::thread> readers;
  for (uint64_t i = 0; i < threads; ++i)
    readers.emplace_back(
        [&, i] { read_some(words, bytes / kPageBytes, reads, seed * threads + i, sums[i]); });
  for (std::thread& reader : readers) reader.join();
  const int64_t ended_ns = now_ns();
  Sums total;
  for (const Sums& each : sums) {
    total.read += each.read;
    total.expected += each.expected;
  }
  std::printf(
      "{\"began_ns\": %lld, \"ended_ns\": %lld, \"sum\": \"%016llx\", \"expected_sum\": \"%016llx\"}\n",
      static_cast<long long>(began_ns), static_cast<long long>(ended_ns),
      static_cast<unsigned long long>(total.read), static_cast<unsigned long long>(total.expected));
  return 0;
}

uint64_t number(const char* text) { return std::strtoull(text, nullptr, 10); }

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "make" && argc == 4) return make(argv[2], number(argv[3]));
  if (command == "read" && argc == 7)
    return read(argv[2], number(argv[3]), number(argv[4]), number(argv[5]), number(argv[6]));
  std::fprintf(stderr, "usage: %s make STORE BYTES\n       %s read STORE BYTES THREADS READS SEED\n", argv[0],
               argv[0]);
  return 2;
}
