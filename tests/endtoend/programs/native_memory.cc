// Memory that is not managed beside memory that is.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "parts.h"

namespace {

constexpr size_t kMib = size_t{1} << 20, kPage = 4096;
constexpr size_t kManagedMib = 192;

uint64_t word_of(size_t at) { return (at + 1) * 0x9E3779B97F4A7C15u; }

struct Words {
  uint64_t* at;
  size_t bytes;
  void fill(size_t salt) const {
    for (size_t i = 0; i < bytes / 8; i += 64) at[i] = word_of(i + salt);
  }
  size_t wrong(size_t salt) const {
    size_t found = 0;
    for (size_t i = 0; i < bytes / 8; i += 64) found += at[i] != word_of(i + salt);
    return found;
  }
};

int report(size_t wrong) {
  std::printf("%zu wrong\n", wrong);
  return wrong == 0 ? 0 : 1;
}

// Small objects that stay native, then more managed memory than the cap.
int small_objects(long mebibytes) {
  std::vector<Words> small;
  for (size_t bytes = 0; bytes < static_cast<size_t>(mebibytes) * kMib; bytes += 8 * kPage) {
    small.push_back({static_cast<uint64_t*>(std::malloc(8 * kPage)), 8 * kPage});
    small.back().fill(bytes);
  }
  const Words large{static_cast<uint64_t*>(std::malloc(kManagedMib * kMib)), kManagedMib * kMib};
  size_t wrong = 0;
  for (size_t round = 0; round < 4; ++round) {
    large.fill(round);
    wrong += large.wrong(round);
  }
  for (size_t i = 0; i < small.size(); ++i) wrong += small[i].wrong(i * 8 * kPage);
  return report(wrong);
}

// As an allocator that grows the heap piece by piece, and maps pieces when it cannot.
int heap_by_brk(long mebibytes) {
  std::vector<Words> pieces;
  for (long i = 0; i < mebibytes; ++i) {
    void* piece = sbrk(kMib);
    if (piece == reinterpret_cast<void*>(-1))
      piece = mmap(nullptr, kMib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (piece == MAP_FAILED) return 2;
    pieces.push_back({static_cast<uint64_t*>(piece), kMib});
    pieces.back().fill(static_cast<size_t>(i));
    usleep(4000);
  }
  size_t wrong = 0;
  for (size_t i = 0; i < pieces.size(); ++i) wrong += pieces[i].wrong(i);
  return report(wrong);
}

// Shared memory, which nobody manages.
Words shared_words(long mebibytes) {
  const size_t bytes = static_cast<size_t>(mebibytes) * kMib;
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) std::exit(2);
  const Words words{static_cast<uint64_t*>(mapped), bytes};
  words.fill(0);
  return words;
}

// More of it than the cap, beside a little that is managed.
int shared(long mebibytes) {
  const Words words = shared_words(mebibytes);
  const Words managed{static_cast<uint64_t*>(std::malloc(kMib)), kMib};
  managed.fill(1);
  for (int i = 0; i < 20; ++i) usleep(20'000);
  return report(words.wrong(0) + managed.wrong(1));
}

// The same in a process that has no managed memory at all.
int shared_alone(long mebibytes) { return report(shared_words(mebibytes).wrong(0)); }

// A file of which nothing is in memory yet, to be read.
int maps_a_file(long mebibytes) {
  char name[] = "/tmp/native_memory_XXXXXX";
  const int fd = mkstemp(name);
  unlink(name);
  const size_t bytes = static_cast<size_t>(mebibytes) * kMib;
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) return 3;
  void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (mapped == MAP_FAILED) return 2;
  size_t found = 0;
  for (size_t at = 0; at < bytes; at += kMib) found += static_cast<const char*>(mapped)[at] != 0;
  return report(found);
}

const Part kParts[] = {{"small_objects", small_objects},
                       {"heap_by_brk", heap_by_brk},
                       {"shared", shared},
                       {"shared_alone", shared_alone},
                       {"maps_a_file", maps_a_file}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
