// Ranges that are reserved without access and committed piece by piece, as garbage collectors and arenas do. Each part
// prints what it finds; the pieces together are larger than the cap.
#include <fcntl.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "parts.h"

namespace {

constexpr size_t kBytes = size_t{64} << 20, kPiece = size_t{256} << 10, kPage = 4096;

char* reserve(size_t bytes = kBytes) {
  void* p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) std::exit(90);
  return static_cast<char*>(p);
}

bool commit(char* piece, bool by_mapping, size_t bytes = kPiece) {
  if (!by_mapping) return mprotect(piece, bytes, PROT_READ | PROT_WRITE) == 0;
  return mmap(piece, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == piece;
}
bool decommit(char* piece, bool by_mapping) {
  if (by_mapping)
    return mmap(piece, kPiece, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) ==
           piece;
  return madvise(piece, kPiece, MADV_DONTNEED) == 0 && mprotect(piece, kPiece, PROT_NONE) == 0;
}

uint64_t value(size_t at, uint64_t round) { return at * 0x9E3779B97F4A7C15u + round; }

void fill(char* piece, size_t at, uint64_t round) {
  for (size_t i = 0; i < kPiece; i += 64) {
    const uint64_t word = value(at + i, round);
    std::memcpy(piece + i, &word, sizeof word);
  }
}
size_t wrong(const char* piece, size_t at, uint64_t round) {
  size_t found = 0;
  for (size_t i = 0; i < kPiece; i += 64) {
    uint64_t word;
    std::memcpy(&word, piece + i, sizeof word);
    found += word != value(at + i, round);
  }
  return found;
}
size_t not_zero(const char* piece, size_t bytes) {
  size_t found = 0;
  for (size_t i = 0; i < bytes; ++i) found += piece[i] != 0;
  return found;
}

sigjmp_buf g_back;
void on_fault(int) { siglongjmp(g_back, 1); }
// Whether a read and a store there are faults.
int faults(volatile char* at) {
  int seen = 0;
  if (sigsetjmp(g_back, 1) == 0)
    (void)*at;
  else
    seen += 1;
  if (sigsetjmp(g_back, 1) == 0)
    *at = *at;
  else
    seen += 2;
  return seen;
}

// All of it is committed and filled; a half is given back, and committed again.
int pieces(long by_mapping) {
  std::signal(SIGSEGV, on_fault);
  const bool mapping = by_mapping != 0;
  char* space = reserve();
  std::printf("before: %d", faults(space));
  bool fine = true;
  size_t bad = 0, left = 0;
  for (size_t at = 0; at < kBytes; at += kPiece) {
    fine = commit(space + at, mapping) && fine;
    fill(space + at, at, 1);
  }
  for (size_t at = 0; at < kBytes; at += kPiece) bad += wrong(space + at, at, 1);
  for (size_t at = 0; at < kBytes; at += 2 * kPiece) fine = decommit(space + at, mapping) && fine;
  std::printf(", given back: %d, beside it: %d", faults(space + 2 * kPiece), faults(space + kPiece));
  for (size_t at = 0; at < kBytes; at += 2 * kPiece) {
    fine = commit(space + at, mapping) && fine;
    left += not_zero(space + at, kPiece);
    fill(space + at, at, 2);
  }
  for (size_t at = 0; at < kBytes; at += kPiece) bad += wrong(space + at, at, at % (2 * kPiece) == 0 ? 2 : 1);
  fine = mprotect(space, kBytes, PROT_READ) == 0 && fine;
  std::printf(", only to be read: %d", faults(space + kPage));
  for (size_t at = 0; at < kBytes; at += kPiece) bad += wrong(space + at, at, at % (2 * kPiece) == 0 ? 2 : 1);
  fine = munmap(space, kBytes) == 0 && fine;
  std::printf("; %s, %zu wrong, %zu not zero\n", fine ? "fine" : "a call failed", bad, left);
  return 0;
}

// A private mapping of a file in the middle of it, and a page behind the file's end.
int file(long) {
  char name[] = "/tmp/reserved_XXXXXX";
  const int fd = mkstemp(name);
  unlink(name);
  char text[3 * kPage + 100];
  for (size_t i = 0; i < sizeof text; ++i) text[i] = static_cast<char>(i * 7 + 1);
  if (write(fd, text, sizeof text) != static_cast<ssize_t>(sizeof text)) return 1;
  char* space = reserve();
  bool fine = commit(space, false);
  std::memset(space, 'x', kPiece);
  char* at = space + 2 * kPage;
  fine = mmap(at, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, kPage) == at && fine;
  const bool is_same = std::memcmp(at, text + kPage, sizeof text - kPage) == 0;
  const size_t behind = not_zero(at + sizeof text - kPage, kPage - 100);
  at[5] = 'y';
  char first = 0;
  fine = pread(fd, &first, 1, kPage + 5) == 1 && fine;
  std::printf("%s, same %d, behind %zu, unchanged %d, before %c, after %c\n", fine ? "fine" : "a call failed",
              is_same, behind, first == text[kPage + 5], at[-1], at[3 * kPage]);
  return 0;
}

// Other memory cannot be moved into managed memory, natively it can: it is refused, and what is there stays.
int moved_into(long) {
  char* space = reserve();
  bool fine = commit(space, false);
  fill(space, 0, 1);
  void* other = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* moved = mremap(other, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, space);
  std::printf("%s, refused %d, %zu wrong\n", fine ? "fine" : "a call failed", moved == MAP_FAILED,
              wrong(space, 0, 1));
  return 0;
}

// Memory that is mapped twice, one behind the other: a small reservation.
int ring(long) {
  const size_t half = size_t{1} << 20;
  const int fd = memfd_create("ring", 0);
  if (ftruncate(fd, static_cast<off_t>(half)) != 0) return 1;
  char* space = reserve(2 * half);
  for (char* at : {space, space + half})
    if (mmap(at, half, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != at) return 2;
  std::strcpy(space + half - 5, "round and round");
  std::printf("%s, %s\n", space + half - 5, space);
  return 0;
}

// What is only to be read, and what is to be executed.
int others(long) {
  std::signal(SIGSEGV, on_fault);
  void* p = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* only_read = static_cast<char*>(p);
  std::printf("only to be read: %d, %zu not zero\n", faults(only_read), not_zero(only_read, kBytes));
  char* space = reserve();
  const unsigned char code[] = {0xB8, 42, 0, 0, 0, 0xC3};  // returns 42
  bool fine = mmap(space, kPiece, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                   -1, 0) == space;
  std::memcpy(space + 100, code, sizeof code);
  fine = mprotect(space, kPiece, PROT_READ | PROT_EXEC) == 0 && fine;
  fine = commit(space + kPiece, false, kBytes - kPiece) && fine;
  for (size_t at = kPiece; at < kBytes; at += kPiece) fill(space + at, at, 3);
  int (*function)() = nullptr;
  void* entry = space + 100;
  std::memcpy(&function, &entry, sizeof function);
  std::printf("%s, %d, a store to it: %d\n", fine ? "fine" : "a call failed", function(), faults(space));
  return 0;
}

const Part kParts[] = {
    {"pieces", pieces}, {"file", file}, {"ring", ring}, {"moved_into", moved_into}, {"others", others}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
