// A backend for tests of everything above it: reads a mapping's bytes when it is made and writes what changed when it
// is flushed or unmapped, so the whole has to fit in memory.
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "backend.h"

namespace Umap {

namespace {

constexpr std::size_t kPage = 4096;

// A page at one moment, whoever writes to it meanwhile: such writes
// reach the source with the next flush. No race of the test's.
__attribute__((no_sanitize("thread"))) void snapshot(const char* page, uint64_t (&words)[kPage / 8]) {
  auto* from = reinterpret_cast<const volatile uint64_t*>(page);
  for (std::size_t i = 0; i < kPage / 8; ++i) words[i] = from[i];
}

class WholeFileBackend final : public Backend {
 public:
  Mapped map(void* fixed, std::size_t bytes, bool writable, Source& source) override {
    const std::size_t length = (bytes + kPage - 1) / kPage * kPage;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (fixed ? MAP_FIXED_NOREPLACE : 0);
    void* address = ::mmap(fixed, length, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (address == MAP_FAILED) return {nullptr, errno};
    Copy copy{length, writable, &source, std::vector<char>(length)};
    if (int error = source.read(copy.stored.data(), length, 0)) {
      ::munmap(address, length);
      return {nullptr, error};
    }
    std::memcpy(address, copy.stored.data(), length);
    if (!writable) ::mprotect(address, length, PROT_READ);
    std::lock_guard lock(mutex_);
    copies_.emplace(address, std::move(copy));
    return {address, 0};
  }
  int unmap(void* address, std::size_t bytes) override {
    int error = flush(address, bytes);
    std::lock_guard lock(mutex_);
    ::munmap(address, copies_.at(address).length);
    copies_.erase(address);
    return error;
  }
  int flush(void* address, std::size_t) override {
    std::lock_guard lock(mutex_);
    Copy& copy = copies_.at(address);
    for (std::size_t at = 0; copy.writable && at < copy.length; at += kPage) {
      uint64_t words[kPage / 8];
      snapshot(static_cast<const char*>(address) + at, words);
      auto* page = reinterpret_cast<const char*>(words);
      if (std::memcmp(page, copy.stored.data() + at, kPage) == 0) continue;
      if (int error = copy.source->write(page, kPage, at)) return error;
      std::memcpy(copy.stored.data() + at, page, kPage);
    }
    return 0;
  }
  void prefetch(const void*, std::size_t) override {}
  int pin(void*, std::size_t) override { return 0; }
  uint64_t buffer_bytes() override { return 0; }

 private:
  struct Copy {
    std::size_t length;
    bool writable;
    Source* source;
    std::vector<char> stored;
  };
  std::mutex mutex_;
  std::map<void*, Copy> copies_;
};

}  // namespace

Backend& backend() {
  static WholeFileBackend only;
  return only;
}

}  // namespace Umap
