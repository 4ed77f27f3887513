// Thousands of random operations on arrays that together are several times the cap:
// `random PART SEED`. What a seed does is the same natively and recompiled, so the hashes
// have to be; one is printed now and then, to tell about where a difference began.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "parts.h"
#include "print.h"

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kSlots = 40;
constexpr size_t kThreads = 4;

enum class From { kNowhere, kMalloc, kAligned, kMapping };

struct Array {
  unsigned char* data = nullptr;
  size_t bytes = 0;
  From from = From::kNowhere;
};

// A part of an array.
struct Range {
  unsigned char* data;
  size_t bytes;
};

unsigned char* mapped_at(void* address, const char* call) {
  if (address != MAP_FAILED) return static_cast<unsigned char*>(address);
  std::perror(call);
  std::exit(98);
}

class World {
 public:
  World(uint64_t seed, size_t bytes_max) : state_(seed * 0x9E3779B97F4A7C15u + 1), bytes_max_(bytes_max) {}
  ~World() {
    for (Array& array : arrays_) release(array);
  }

  void step();
  uint64_t hash() {
    for (Array& array : arrays_) take_in({array.data, array.bytes});
    return hash_;
  }

 private:
  uint64_t random() { return next_random(&state_); }
  size_t below(size_t limit) { return limit == 0 ? 0 : random() % limit; }
  // Small sizes are as frequent as large ones.
  size_t random_size() { return 1 + below(size_t{1} << (4 + below(19))); }
  Array& any_array() { return arrays_[below(kSlots)]; }
  Range any_range(const Array& array) {
    size_t begin = below(array.bytes);
    return {array.data + begin, std::min(array.bytes - begin, random_size())};
  }
  template <class T>
  T* elements(const Array& array, size_t* count);

  void take_in(Range range);
  void fill(Range range);
  void allocate(Array& array);
  void release(Array& array);
  void resize(Array& array);
  void resize_mapping(Array& array);
  void copy();
  void move();
  void set();
  void sort();
  void permute();
  void scattered_stores();
  void records();
  void atomics();
  void search();
  void compare();

  uint64_t state_;
  const size_t bytes_max_;
  size_t live_bytes_ = 0;
  uint64_t hash_ = 0;
  Array arrays_[kSlots];
};

void World::take_in(Range range) {
  uint64_t sum = hash_ + range.bytes;
  size_t at = 0;
  for (; at + 8 <= range.bytes; at += 8) {
    uint64_t word;
    std::memcpy(&word, range.data + at, 8);  // anywhere, so now and then across two blocks
    sum = mix(sum, word);
  }
  for (; at < range.bytes; ++at) sum = mix(sum, range.data[at]);
  hash_ = sum;
}

void World::fill(Range range) {
  uint64_t word = random();
  if (random() % 3 == 0) {
    std::memset(range.data, static_cast<int>(word & 255), range.bytes);
    return;
  }
  size_t at = 0;
  for (; at + 8 <= range.bytes; at += 8, word += 0x0101010101010101u * 3)
    std::memcpy(range.data + at, &word, 8);
  for (; at < range.bytes; ++at) range.data[at] = static_cast<unsigned char>(word += 7);
}

void World::allocate(Array& array) {
  release(array);
  size_t bytes = random_size();
  if (live_bytes_ + bytes > bytes_max_) return;
  switch (below(4)) {
    case 0:
      array = {static_cast<unsigned char*>(std::calloc(bytes, 1)), bytes, From::kMalloc};
      take_in({array.data, bytes});
      break;
    case 1:
      bytes = (bytes + 63) / 64 * 64;
      array = {static_cast<unsigned char*>(std::aligned_alloc(64, bytes)), bytes, From::kAligned};
      fill({array.data, bytes});
      break;
    case 2: {
      bytes = (bytes + kPage - 1) / kPage * kPage;
      void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      array = {mapped_at(mapped, "mmap"), bytes, From::kMapping};
      take_in({array.data, bytes});
      break;
    }
    default:
      array = {static_cast<unsigned char*>(std::malloc(bytes)), bytes, From::kMalloc};
      fill({array.data, bytes});
  }
  live_bytes_ += array.bytes;
}

void World::release(Array& array) {
  live_bytes_ -= array.bytes;
  if (array.from == From::kMapping)
    munmap(array.data, array.bytes);
  else
    std::free(array.data);
  array = {};
}

void World::resize(Array& array) {
  size_t bytes = random() % 4 == 0 ? random_size() : array.bytes / 2 + below(array.bytes) + 1;
  if (array.from == From::kNowhere || live_bytes_ + bytes > bytes_max_) return allocate(array);
  if (array.from == From::kMapping) return resize_mapping(array);
  size_t before = array.bytes;
  array.data = static_cast<unsigned char*>(std::realloc(array.data, bytes));
  array.bytes = bytes;
  array.from = From::kMalloc;
  live_bytes_ += bytes - before;
  if (bytes > before) fill({array.data + before, bytes - before});
}

void World::resize_mapping(Array& array) {
  size_t pages = array.bytes / kPage, before = array.bytes;
  size_t other = 1 + below(2 * pages);
  switch (below(4)) {
    case 0:  // the first pages go
      if (pages < 2) return;
      other = 1 + below(pages - 1);
      munmap(array.data, other * kPage);
      array = {array.data + other * kPage, (pages - other) * kPage, From::kMapping};
      break;
    case 1:
      madvise(array.data, array.bytes, MADV_DONTNEED);
      take_in({array.data, array.bytes});
      break;
    default:
      array.data = mapped_at(mremap(array.data, before, other * kPage, MREMAP_MAYMOVE), "mremap");
      array.bytes = other * kPage;
      if (array.bytes > before) take_in({array.data + before, array.bytes - before});
  }
  live_bytes_ += array.bytes - before;
}

void World::copy() {
  size_t to = below(kSlots), from = (to + 1 + below(kSlots - 1)) % kSlots;  // two different ones
  if (arrays_[to].bytes == 0 || arrays_[from].bytes == 0) return;
  Range a = any_range(arrays_[to]), b = any_range(arrays_[from]);
  std::memcpy(a.data, b.data, std::min(a.bytes, b.bytes));
}

void World::move() {
  Array& array = any_array();
  if (array.bytes == 0) return;
  Range a = any_range(array), b = any_range(array);
  if (random() % 2) b.data = a.data + below(std::min<size_t>(a.bytes, 100));  // nearly the same place
  size_t room = static_cast<size_t>(array.data + array.bytes - b.data);
  std::memmove(a.data, b.data, std::min({a.bytes, b.bytes, room}));
}

void World::set() {
  Array& array = any_array();
  if (array.bytes == 0) return;
  Range range = any_range(array);
  std::memset(range.data, static_cast<int>(random() & 255), range.bytes);
}

// The aligned elements of some part of an array.
template <class T>
T* World::elements(const Array& array, size_t* count) {
  *count = array.bytes / sizeof(T);
  if (*count == 0) return nullptr;
  size_t begin = below(*count);
  *count = std::min(*count - begin, 1 + below(20'000));
  return reinterpret_cast<T*>(array.data) + begin;
}

void World::sort() {
  Array& array = any_array();
  size_t count;
  switch (below(3)) {
    case 0:
      if (auto* words = elements<uint64_t>(array, &count)) std::sort(words, words + count);
      break;
    case 1:
      if (auto* halves = elements<uint16_t>(array, &count))
        std::stable_sort(halves, halves + count, [](uint16_t a, uint16_t b) { return a % 251 < b % 251; });
      break;
    default:
      if (auto* words = elements<uint32_t>(array, &count))
        std::qsort(words, count, sizeof *words, [](const void* a, const void* b) {
          auto x = *static_cast<const uint32_t*>(a), y = *static_cast<const uint32_t*>(b);
          return (x > y) - (x < y);
        });
  }
}

void World::permute() {
  size_t count;
  auto* words = elements<uint32_t>(any_array(), &count);
  if (words == nullptr) return;
  switch (below(4)) {
    case 0:
      std::reverse(words, words + count);
      break;
    case 1:
      std::rotate(words, words + below(count), words + count);
      break;
    case 2:
      std::partial_sum(words, words + count, words);
      break;
    default:
      for (size_t i = count - 1; i > 0; --i) std::swap(words[i], words[below(i + 1)]);
  }
}

void World::scattered_stores() {
  Array& array = any_array();
  if (array.bytes < 64) return;
  for (int i = 0; i < 200; ++i) {
    uint64_t value = random();
    size_t width = size_t{1} << below(4);
    size_t at_byte = below(array.bytes - 16);
    if (random() % 4 == 0 && at_byte > kPage) at_byte = at_byte / kPage * kPage - below(8);  // across an edge
    unsigned char* at = array.data + at_byte;
    if (width == 8) std::memcpy(at, &value, 8);
    if (width == 4) std::memcpy(at, &value, 4);
    if (width == 2) std::memcpy(at, &value, 2);
    if (width == 1) *at = static_cast<unsigned char>(value);
    if (i % 16 == 0) std::memcpy(&value, at, 8), hash_ = mix(hash_, value);
  }
}

struct Record {
  uint8_t key[10];
  uint8_t value[90];
};

void World::records() {
  size_t count;
  auto* at = elements<Record>(any_array(), &count);
  if (at == nullptr) return;
  count = std::min<size_t>(count, 3000);
  std::sort(at, at + count,
            [](const Record& a, const Record& b) { return std::memcmp(&a, &b, sizeof(Record)) < 0; });
  Record first = at[0];
  at[0] = at[count - 1];
  at[count - 1] = first;
}

void World::atomics() {
  size_t count;
  auto* words = elements<uint64_t>(any_array(), &count);
  if (words == nullptr) return;
  for (size_t i = 0; i < count; i += 97) {
    std::atomic_ref<uint64_t> word(words[i]);
    uint64_t before = word.fetch_add(i);
    word.compare_exchange_strong(before,
                                 ~before);  // fails: it is not what it was before the addition, but for i = 0
    hash_ = mix(hash_, word.fetch_xor(before));
  }
}

void World::search() {
  Array& array = any_array();
  if (array.bytes == 0) return;
  Range range = any_range(array);
  const void* found = std::memchr(range.data, static_cast<int>(random() & 255), range.bytes);
  hash_ = mix(hash_, found == nullptr
                         ? 0
                         : static_cast<uint64_t>(static_cast<const unsigned char*>(found) - range.data));
  range.data[range.bytes - 1] = 0;
  hash_ = mix(hash_, std::strlen(reinterpret_cast<char*>(range.data)));
}

void World::compare() {
  Array &a = any_array(), &b = any_array();
  if (a.bytes == 0 || b.bytes == 0) return;
  Range x = any_range(a), y = any_range(b);
  int order = std::memcmp(x.data, y.data, std::min(x.bytes, y.bytes));
  hash_ = mix(hash_, static_cast<uint64_t>((order > 0) - (order < 0) + 1));
  take_in(x);
}

void World::step() {
  using Operation = void (World::*)();
  static constexpr Operation kOperations[] = {&World::copy,    &World::move,    &World::set,
                                              &World::sort,    &World::permute, &World::scattered_stores,
                                              &World::records, &World::atomics, &World::search,
                                              &World::compare};
  size_t choice = below(std::size(kOperations) + 5);
  if (choice < std::size(kOperations)) return (this->*kOperations[choice])();
  Array& array = any_array();
  if (choice == std::size(kOperations)) return release(array);
  if (choice < std::size(kOperations) + 3) return resize(array);
  allocate(array);
}

void run(uint64_t seed, size_t steps, size_t bytes_max, bool tell) {
  World world(seed, bytes_max);
  for (size_t i = 1; i <= steps; ++i) {
    world.step();
    if (tell && i % 250 == 0) print_sum("after 250 more", world.hash());
  }
  if (tell) print_sum("end", world.hash());
}

// Threads with a world each, and all with the words of their own in one array.
void run_threads(uint64_t seed, size_t steps, size_t bytes_max) {
  constexpr size_t kWords = 500'000;
  std::vector<uint64_t> shared(kWords), hashes(kThreads);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      World world(seed * kThreads + t, bytes_max / kThreads);
      uint64_t state = seed + t + 1;
      for (size_t i = 0; i < steps; ++i) {
        world.step();
        for (int j = 0; j < 50; ++j)
          shared[next_random(&state) % (kWords / kThreads) * kThreads + t] += next_random(&state);
      }
      hashes[t] = world.hash();
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < kThreads; ++t) print_sum("thread", hashes[t]);
  print_sum("shared", std::accumulate(shared.begin(), shared.end(), uint64_t{0}, mix));
}

int brief(long seed) { return run(static_cast<uint64_t>(seed), 2500, 32u << 20, true), 0; }
int brief_threads(long seed) { return run_threads(static_cast<uint64_t>(seed), 600, 32u << 20), 0; }
int longer(long seed) { return run(static_cast<uint64_t>(seed), 20'000, 64u << 20, true), 0; }
int longer_threads(long seed) { return run_threads(static_cast<uint64_t>(seed), 3000, 64u << 20), 0; }

const Part kParts[] = {{"brief", brief},
                       {"brief_threads", brief_threads},
                       {"longer", longer},
                       {"longer_threads", longer_threads}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
