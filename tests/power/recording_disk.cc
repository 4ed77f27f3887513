// A disk whose writes and flushes are recorded, in the order in which they came: recording_disk LOG DIRECTORY BYTES.
//
// DIRECTORY gets two files: `disk`, BYTES long and zeros at first, for a loop device to stand on, and `said`, to which
// a program appends what it knows to be durable. LOG gets records, in the order of what happened:
//
//     u64 kind, u64 offset, u64 bytes      kind 1: written to the disk, the bytes follow
//                                          kind 2: the disk was flushed
//                                          kind 3: said, the bytes follow
//
// A write is recorded before its writer hears that it is done, and a flush before the flush returns: what stands in the
// log before a record was done before it. It runs until DIRECTORY is unmounted. Exit status: 1, with a line, when it
// cannot begin or could not record all.
//
// Threads: one (FUSE's loop is told so), so that the order is that of the requests.
#define FUSE_USE_VERSION 31
#include <fuse.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

constexpr std::string_view kDisk = "/disk", kSaid = "/said";
constexpr uint64_t kWritten = 1, kFlushed = 2, kSaying = 3;

FILE* g_log = nullptr;
char* g_disk = nullptr;
uint64_t g_disk_bytes = 0, g_said_bytes = 0;

bool record(uint64_t kind, uint64_t offset, const char* data, uint64_t bytes) {
  const uint64_t head[3] = {kind, offset, bytes};
  return std::fwrite(head, sizeof head, 1, g_log) == 1 &&
         (bytes == 0 || std::fwrite(data, bytes, 1, g_log) == 1);
}

int get_attributes(const char* path, struct stat* to, fuse_file_info*) {
  *to = {};
  const std::string_view name = path;
  if (name == "/") {
    to->st_mode = S_IFDIR | 0700;
    to->st_nlink = 2;
    return 0;
  }
  if (name != kDisk && name != kSaid) return -ENOENT;
  to->st_mode = S_IFREG | 0600;
  to->st_nlink = 1;
  to->st_size = static_cast<off_t>(name == kDisk ? g_disk_bytes : g_said_bytes);
  return 0;
}

int open_file(const char* path, fuse_file_info* file) {
  const std::string_view name = path;
  if (name != kDisk && name != kSaid) return -ENOENT;
  file->direct_io = name == kSaid;  // what is said counts from when it is said
  file->fh = name == kDisk;
  return 0;
}

int read_file(const char*, char* to, size_t bytes, off_t offset, fuse_file_info* file) {
  const auto at = static_cast<uint64_t>(offset);
  if (!file->fh || at >= g_disk_bytes) return 0;
  if (bytes > g_disk_bytes - at) bytes = g_disk_bytes - at;
  std::memcpy(to, g_disk + at, bytes);
  return static_cast<int>(bytes);
}

int write_file(const char*, const char* from, size_t bytes, off_t offset, fuse_file_info* file) {
  const auto at = static_cast<uint64_t>(offset);
  if (!file->fh) {
    if (!record(kSaying, g_said_bytes, from, bytes)) return -EIO;
    g_said_bytes += bytes;
    return static_cast<int>(bytes);
  }
  if (at > g_disk_bytes || bytes > g_disk_bytes - at) return -ENOSPC;
  if (!record(kWritten, at, from, bytes)) return -EIO;
  std::memcpy(g_disk + at, from, bytes);
  return static_cast<int>(bytes);
}

int flush_disk(const char*, int, fuse_file_info* file) {
  return !file->fh || record(kFlushed, 0, nullptr, 0) ? 0 : -EIO;
}

// Opening the file of what is said may ask for it to be cut; it only grows.
int cut_file(const char*, off_t, fuse_file_info*) { return 0; }

fuse_operations operations() {
  fuse_operations result{};
  result.getattr = get_attributes;
  result.open = open_file;
  result.read = read_file;
  result.write = write_file;
  result.fsync = flush_disk;
  result.truncate = cut_file;
  return result;
}

int fail(const char* what) {
  std::fprintf(stderr, "recording_disk: %s: %s\n", what, std::strerror(errno));
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: recording_disk LOG DIRECTORY BYTES\n");
    return 1;
  }
  g_disk_bytes = std::strtoull(arguments[3], nullptr, 10);
  g_log = std::fopen(arguments[1], "wb");
  if (g_log == nullptr) return fail(arguments[1]);
  void* const memory = ::mmap(nullptr, g_disk_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return fail("the disk's memory");
  g_disk = static_cast<char*>(memory);
  const fuse_operations table = operations();
  char name[] = "recording_disk", foreground[] = "-f", single[] = "-s";
  char* words[] = {name, foreground, single, arguments[2], nullptr};
  const int result = fuse_main(4, words, &table, nullptr);
  if (std::fclose(g_log) != 0) return fail(arguments[1]);
  return result == 0 ? 0 : 1;
}
