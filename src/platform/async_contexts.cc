#include "platform/async_contexts.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "base/atomic.h"
#include "platform/file.h"
#include "platform/raw_calls.h"

namespace spw::platform {

namespace {

// Without opendir and fopen, which allocate: a thread of the program may wait for this inside of its allocator, with its
// locks.
constexpr size_t kPieceBytes = 4096;

Atomic<int> g_own{0};

bool is_ring(const File& directory, const char* name) {
  char target[64];
  const ssize_t length = ::syscall(SYS_readlinkat, directory.fd(), name, target, sizeof target);
  return length > 0 && std::string_view(target, static_cast<size_t>(length)) == "anon_inode:[io_uring]";
}

int count_rings() {
  auto descriptors = open_file("/proc/self/fd", O_RDONLY | O_DIRECTORY);
  if (!descriptors) return 0;
  int found = 0;
  alignas(dirent64) char entries[kPieceBytes];
  for (;;) {
    const long bytes = ::syscall(SYS_getdents64, descriptors->fd(), entries, sizeof entries);
    if (bytes <= 0) return found;
    for (long at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      if (is_ring(*descriptors, entry->d_name)) ++found;
      at += entry->d_reclen;
    }
  }
}

// The kernel maps the ring of each libaio context into the process.
int count_aio_contexts() {
  constexpr std::string_view kName = "/[aio]";
  auto maps = open_file("/proc/self/maps", O_RDONLY);
  if (!maps) return 0;
  int found = 0;
  char text[kPieceBytes];
  size_t kept = 0;  // of the piece before, where the name may have begun
  for (off_t at = 0;;) {
    const ssize_t got = raw::pread(maps->fd(), text + kept, sizeof text - kept, at);
    if (got <= 0) return found;
    at += got;
    const std::string_view piece(text, kept + static_cast<size_t>(got));
    for (size_t from = 0; (from = piece.find(kName, from)) != piece.npos; from += kName.size()) ++found;
    kept = piece.size() < kName.size() ? piece.size() : kName.size() - 1;
    std::memmove(text, text + piece.size() - kept, kept);
  }
}

}  // namespace

OwnAsyncContext::OwnAsyncContext() { g_own.fetch_add_relaxed(1); }
OwnAsyncContext::~OwnAsyncContext() { g_own.fetch_sub_relaxed(1); }

bool has_async_contexts_of_program() { return count_rings() + count_aio_contexts() > g_own.load_relaxed(); }

}  // namespace spw::platform
