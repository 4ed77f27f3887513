// Preloaded into a native program, puts its large C++ arrays into shared mappings of files: the peer "plain mmap of a
// file" of a program that was written for memory, unchanged.
//
// operator new of at least kThresholdBytes maps a file of its own in $SPILLWAY_BENCH_ARRAYS, which has no name; all
// else is malloc's. The file is allocated in full first, so that it lies together on the disk as well as it can.
//
// Threads: any. Limits: kMappingsMax such arrays at a time; a program
// that needs more, or where mapping fails, is ended.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>

namespace {

constexpr size_t kThresholdBytes = 1 << 20;
constexpr int kMappingsMax = 4096;
constexpr size_t kPageBytes = 4096;

struct Mapping {
  void* address;
  size_t bytes;
};

std::mutex mutex;
Mapping mappings[kMappingsMax];
int mapping_count = 0;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "file_arrays: ");
  std::perror(what);
  std::abort();
}

void* map_array(size_t bytes) {
  const char* directory = std::getenv("SPILLWAY_BENCH_ARRAYS");
  if (directory == nullptr) fail("SPILLWAY_BENCH_ARRAYS");
  const int file = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0 || posix_fallocate(file, 0, static_cast<off_t>(bytes)) != 0) fail("file of an array");
  void* const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (address == MAP_FAILED) fail("mapping of an array");
  close(file);
  const std::lock_guard<std::mutex> guard(mutex);
  if (mapping_count == kMappingsMax) fail("too many arrays");
  mappings[mapping_count++] = {address, bytes};
  return address;
}

// False: it is malloc's.
bool unmap_array(void* address) {
  if (reinterpret_cast<uintptr_t>(address) % kPageBytes != 0) return false;
  const std::lock_guard<std::mutex> guard(mutex);
  for (int i = 0; i < mapping_count; ++i) {
    if (mappings[i].address != address) continue;
    munmap(address, mappings[i].bytes);
    mappings[i] = mappings[--mapping_count];
    return true;
  }
  return false;
}

void* allocate(size_t bytes) { return bytes >= kThresholdBytes ? map_array(bytes) : std::malloc(bytes); }

void* allocate_or_throw(size_t bytes) {
  void* const address = allocate(bytes);
  if (address == nullptr) throw std::bad_alloc();
  return address;
}

void release(void* address) {
  if (address != nullptr && !unmap_array(address)) std::free(address);
}

}  // namespace

void* operator new(size_t bytes) { return allocate_or_throw(bytes); }
void* operator new[](size_t bytes) { return allocate_or_throw(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void operator delete(void* address) noexcept { release(address); }
void operator delete[](void* address) noexcept { release(address); }
void operator delete(void* address, size_t) noexcept { release(address); }
void operator delete[](void* address, size_t) noexcept { release(address); }
void operator delete(void* address, const std::nothrow_t&) noexcept { release(address); }
void operator delete[](void* address, const std::nothrow_t&) noexcept { release(address); }
