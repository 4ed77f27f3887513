// A graph's adjacency lists, built edge by edge in a mapped file, as stores for graphs that grow are (Metall's bench):
// vertices in hash tables, each with a vector of its neighbours that doubles when it is full.
//
// Everything is in the file and refers by offsets. Memory comes from an allocator of sizes that are powers of two,
// whose blocks of a size lie together by the order in which they were wanted: neighbours of a vertex are where there
// was room. Vertices are dealt to kBanks tables, each with a lock.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "common/options.h"
#include "common/random.h"
#include "graph/rmat.h"
#include "micro/file.h"
#include "micro/harness.h"

namespace examples {

// Of [0, bytes) of a file. Offset 0 is none. Threads: any. Ends the program where the file is full.
class Arena {
 public:
  explicit Arena(const MappedWords& file)
      : base_(reinterpret_cast<char*>(file.data())), bytes_(file.bytes()) {}

  template <class T>
  T* at(uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }

  // 2^size_class bytes, at least 8.
  uint64_t take(unsigned size_class) {
    Sizes& of_size = sizes_[size_class];
    const std::lock_guard<std::mutex> guard(of_size.mutex);
    if (of_size.free != 0) {
      const uint64_t offset = of_size.free;
      of_size.free = *at<uint64_t>(offset);
      return offset;
    }
    if (of_size.next == of_size.end) refill(of_size, uint64_t{1} << size_class);
    const uint64_t offset = of_size.next;
    of_size.next += uint64_t{1} << size_class;
    return offset;
  }

  void give_back(uint64_t offset, unsigned size_class) {
    Sizes& of_size = sizes_[size_class];
    const std::lock_guard<std::mutex> guard(of_size.mutex);
    *at<uint64_t>(offset) = of_size.free;
    of_size.free = offset;
  }

  uint64_t used() const { return used_.load(); }

 private:
  static constexpr uint64_t kChunkBytes = uint64_t{1} << 21;

  struct Sizes {
    std::mutex mutex;
    uint64_t free = 0, next = 0, end = 0;
  };

  void refill(Sizes& of_size, uint64_t block_bytes) {
    const uint64_t chunk_bytes = std::max(kChunkBytes, block_bytes);
    of_size.next = used_.fetch_add(chunk_bytes);
    of_size.end = of_size.next + chunk_bytes;
    if (of_size.end > bytes_) fail("the graph does not fit into --bytes of the file");
  }

  char* const base_;
  const uint64_t bytes_;
  std::atomic<uint64_t> used_{kChunkBytes};
  std::array<Sizes, 48> sizes_;
};

class AdjacencyLists {
 public:
  explicit AdjacencyLists(Arena& arena) : arena_(arena), banks_(new Bank[kBanks]) {}

  void add(uint64_t vertex, uint64_t neighbour) {
    Bank& bank = banks_[mix(vertex) % kBanks];
    const std::lock_guard<std::mutex> guard(bank.mutex);
    if (bank.count * 4 >= bank.capacity() * 3) grow(bank);
    List& list = *find(bank, vertex + 1);
    if (list.key == 0) {
      list.key = vertex + 1;
      ++bank.count;
    }
    if (list.size == list.capacity()) grow(list);
    arena_.at<uint64_t>(list.place)[list.size++] = neighbour;
  }

  // Of all edges, however they came.
  uint64_t digest() const {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < kBanks; ++i)
      for (uint64_t slot = 0; slot < banks_[i].capacity(); ++slot) {
        const List& list = arena_.at<List>(banks_[i].place)[slot];
        for (uint64_t n = 0; n < list.size; ++n)
          sum += random_at(list.key - 1, arena_.at<uint64_t>(list.place)[n]);
      }
    return sum;
  }

 private:
  static constexpr uint64_t kBanks = 1024;
  static constexpr uint32_t kFirstClass = 4;  // 2 neighbours

  // A slot of a table. key: the vertex + 1; 0: free.
  struct List {
    uint64_t key, place;
    uint32_t size, size_class;  // 0: none yet
    uint64_t unused;
    uint64_t capacity() const { return size_class == 0 ? 0 : (uint64_t{1} << size_class) / sizeof(uint64_t); }
  };
  static_assert(sizeof(List) == 32, "a power of two");

  struct Bank {
    std::mutex mutex;
    uint64_t place = 0, count = 0;
    unsigned size_class = 0;
    uint64_t capacity() const { return size_class == 0 ? 0 : (uint64_t{1} << size_class) / sizeof(List); }
  };

  // Of the key, or the free slot for it.
  List* find(const Bank& bank, uint64_t key) const {
    const uint64_t mask = bank.capacity() - 1;
    List* const slots = arena_.at<List>(bank.place);
    uint64_t slot = mix(key) / kBanks & mask;
    while (slots[slot].key != 0 && slots[slot].key != key) slot = (slot + 1) & mask;
    return slots + slot;
  }

  void grow(Bank& bank) {
    const Bank& old = bank;
    const uint64_t old_place = old.place, old_capacity = old.capacity();
    const unsigned old_class = old.size_class;
    bank.size_class = old_class == 0 ? 9 : old_class + 1;
    bank.place = arena_.take(bank.size_class);
    std::fill_n(arena_.at<List>(bank.place), bank.capacity(), List{});
    for (uint64_t slot = 0; slot < old_capacity; ++slot) {
      const List& list = arena_.at<List>(old_place)[slot];
      if (list.key != 0) *find(bank, list.key) = list;
    }
    if (old_class != 0) arena_.give_back(old_place, old_class);
  }

  void grow(List& list) {
    const uint32_t size_class = list.size_class == 0 ? kFirstClass : list.size_class + 1;
    const uint64_t place = arena_.take(size_class);
    std::copy_n(arena_.at<uint64_t>(list.place), list.size, arena_.at<uint64_t>(place));
    if (list.size_class != 0) arena_.give_back(list.place, list.size_class);
    list.place = place;
    list.size_class = size_class;
  }

  Arena& arena_;
  const std::unique_ptr<Bank[]> banks_;
};

// Makes the file, of settings.bytes, and builds the lists of an R-MAT graph of settings.ops edges, 16 a vertex, each
// entered at both its ends. Sets rounds, warmups, and bytes to those that were used. Checks every list.
inline Measured file_graph(Settings& settings, const std::string& path) {
  const int created = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (created < 0 || ftruncate(created, static_cast<off_t>(settings.bytes)) != 0) fail("cannot make " + path);
  close(created);
  int scale = 10;
  while (scale < 31 && (uint64_t{16} << scale) < settings.ops) ++scale;
  const Rmat rmat(scale, 1);
  const MappedWords file(path, true);
  Arena arena(file);
  AdjacencyLists lists(arena);
  settings.rounds = 1;
  settings.warmups = 0;
  uint64_t expected = 0;
  for (uint64_t i = 0; i < settings.ops; ++i) {
    const Edge edge = rmat.edge(i);
    expected += random_at(edge.from, edge.to) + random_at(edge.to, edge.from);
  }
  Measured measured = measure(settings, settings.ops, [&](int thread) {
    const Share share(settings.ops, thread, settings.threads);
    for (uint64_t i = share.begin; i < share.end; ++i) {
      const Edge edge = rmat.edge(i);
      lists.add(edge.from, edge.to);
      lists.add(edge.to, edge.from);
    }
    return uint64_t{0};
  });
  settings.bytes = arena.used();
  measured.checksum = lists.digest();
  if (measured.checksum != expected) fail("the lists are wrong");
  return measured;
}

}  // namespace examples
