#include "platform/async_contexts.h"

#include <dirent.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/atomic.h"

namespace spw::platform {

namespace {

Atomic<int> g_own{0};

int count_rings() {
  DIR* descriptors = ::opendir("/proc/thread-self/fd");
  if (descriptors == nullptr) return 0;
  int found = 0;
  while (const dirent* entry = ::readdir(descriptors)) {
    char target[64];
    const ssize_t length = ::readlinkat(::dirfd(descriptors), entry->d_name, target, sizeof target);
    if (length > 0 && std::string_view(target, static_cast<size_t>(length)) == "anon_inode:[io_uring]")
      ++found;
  }
  ::closedir(descriptors);
  return found;
}

// The kernel maps the ring of each libaio context into the process.
int count_aio_contexts() {
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return 0;
  int found = 0;
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr)
    if (std::strstr(line, "/[aio]") != nullptr) ++found;
  std::fclose(maps);
  return found;
}

}  // namespace

OwnAsyncContext::OwnAsyncContext() { g_own.fetch_add_relaxed(1); }
OwnAsyncContext::~OwnAsyncContext() { g_own.fetch_sub_relaxed(1); }

bool has_async_contexts_of_program() { return count_rings() + count_aio_contexts() > g_own.load_relaxed(); }

}  // namespace spw::platform
