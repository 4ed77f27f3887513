// Files that are mapped, also read and written by calls, and cut.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "operations.h"

namespace torture {

namespace {

constexpr uint32_t kFirstPages = 256;

File files[kGroups][kFileKinds];

int opened(FileKind kind, const char* directory, unsigned group) {
  char name[256];
  if (kind == FileKind::kMemfd) return memfd_create("mapped", MFD_CLOEXEC);
  std::snprintf(name, sizeof name, "%s/mmtorture.%d.%u.%u", kind == FileKind::kShm ? "/dev/shm" : directory,
                static_cast<int>(getpid()), group, static_cast<unsigned>(kind));
  const int file = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  return file;
}

void set_up_file(File& file, FileKind kind, const char* directory, unsigned group) {
  file.read_write = opened(kind, directory, group);
  char name[64], target[256];
  std::snprintf(name, sizeof name, "/proc/self/fd/%d", file.read_write);
  file.read_only = open(name, O_RDONLY | O_CLOEXEC);
  // Files that have names lose them at once.
  const ssize_t length = readlink(name, target, sizeof target - 1);
  target[std::max<ssize_t>(length, 0)] = 0;
  if (kind != FileKind::kMemfd) unlink(target);
  char page[kPage];
  bool good = file.read_write >= 0 && file.read_only >= 0;
  for (uint32_t at = 0; good && at < kFirstPages; ++at) {
    for (size_t byte = 0; byte < kPage; ++byte)
      page[byte] = static_cast<char>(mixed(at + group, byte / 64 + static_cast<unsigned>(kind)));
    good =
        pwrite(file.read_write, page, kPage, static_cast<off_t>(at * kPage)) == static_cast<ssize_t>(kPage);
  }
  if (good) return;
  std::perror("mmtorture: a file to map");
  std::exit(98);
}

FileKind choose_changing(Context& context) {
  static constexpr FileKind kChanging[] = {FileKind::kDisk, FileKind::kMemfd, FileKind::kShm};
  const FileKind kind = context.random.of(kChanging);
  context.log->in("file", static_cast<int>(kind));
  return kind;
}

unsigned choose_group(Context& context) {
  unsigned group = static_cast<unsigned>(context.random.below(kGroups));
  while ((context.groups >> group & 1) == 0) group = (group + 1) % kGroups;
  context.log->in("group", group);
  return group;
}

void cut(Context& context) {
  const unsigned group = choose_group(context);
  const File& file = file_of(group, choose_changing(context));
  const off_t bytes = static_cast<off_t>(context.random.below(kFilePagesMax) * kPage);
  context.log->in("bytes", bytes);
  context.log->calls();
  context.log->result("ftruncate", ftruncate(file.read_write, bytes));
}

void punch(Context& context) {
  const unsigned group = choose_group(context);
  const File& file = file_of(group, choose_changing(context));
  const auto offset = static_cast<off_t>(context.random.below(kFilePagesMax) * kPage);
  const auto bytes = static_cast<off_t>((1 + context.random.below(16)) * kPage);
  context.log->in("offset", offset);
  context.log->in("bytes", bytes);
  context.log->calls();
  context.log->result("fallocate",
                      fallocate(file.read_write, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes));
}

// Of a file that is mapped, for calls on its descriptor.
struct FewBytes {
  unsigned group;
  const File& file;
  off_t offset;
  size_t bytes;
};
FewBytes choose_few_bytes(Context& context) {
  const unsigned group = choose_group(context);
  const File& file = file_of(group, choose_changing(context));
  const auto offset = static_cast<off_t>(context.random.below(64 * kPage));
  const size_t bytes = 1 + context.random.below(context.random.percent(50) ? 64 : 3 * kPage);
  context.log->in("offset", offset);
  context.log->in("bytes", static_cast<int64_t>(bytes));
  context.log->calls();
  return {group, file, offset, bytes};
}

void write_mapped(Context& context) {
  const auto [group, file, offset, bytes] = choose_few_bytes(context);
  char* from = scratches[group].bytes;
  std::memset(from, static_cast<int>(context.random.next()), bytes);
  struct stat state;
  fstat(file.read_write, &state);
  // Sizes stay whole pages: what is stored behind a file's end, in its last page, may be there afterwards or not.
  if (offset + static_cast<off_t>(bytes) > state.st_size) return context.log->word("behind_its_end");
  context.log->result("pwrite", pwrite(file.read_write, from, bytes, offset));
}

void read_mapped(Context& context) {
  const auto [group, file, offset, bytes] = choose_few_bytes(context);
  const unsigned char* into = reinterpret_cast<unsigned char*>(scratches[group].bytes);
  const ssize_t done = pread(file.read_write, scratches[group].bytes, bytes, offset);
  context.log->result("pread", done);
  uint64_t sum = 0;
  for (ssize_t at = 0; at < done; ++at) sum = (sum ^ into[at]) * 0x100000001B3u;
  context.log->hex("sum", sum);
}

}  // namespace

const File& file_of(unsigned group, FileKind kind) { return files[group][static_cast<unsigned>(kind)]; }

void set_up_files(const char* directory) {
  for (unsigned group = 0; group < kGroups; ++group) {
    for (unsigned kind = 0; kind < kFileKinds; ++kind) {
      set_up_file(files[group][kind], static_cast<FileKind>(kind), directory, group);
    }
  }
}

const Operation file_operations[] = {
    {"cut", 3, cut, false},
    {"punch", 3, punch, false},
    {"write_mapped", 12, write_mapped, false},
    {"read_mapped", 12, read_mapped, false},
    {nullptr, 0, nullptr, false},
};

}  // namespace torture
