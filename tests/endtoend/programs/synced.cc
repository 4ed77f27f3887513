// Stores to a shared mapping of a file and syncs what it stored, by msync and fsync, until it is killed; what it says
// on standard output is the journal of what must be found then, as that of killed.cc: synced FILE SEED RECORDS.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>

namespace {

constexpr unsigned kRecordBytes = 700, kOfTransaction = 6;
constexpr uintptr_t kPageBytes = 4096;

void say(const char* text, int bytes) {
  if (write(1, text, static_cast<size_t>(bytes)) != bytes) _exit(1);
}

void sync_record(char* record) {
  const auto first = reinterpret_cast<uintptr_t>(record) / kPageBytes * kPageBytes;
  const auto end = reinterpret_cast<uintptr_t>(record) + kRecordBytes;
  if (msync(reinterpret_cast<void*>(first), end - first, MS_SYNC) != 0) _exit(3);
}

}  // namespace

int main(int, char** arguments) {
  std::mt19937 random(static_cast<unsigned>(atoi(arguments[2])));
  const auto records = static_cast<unsigned>(atoi(arguments[3]));
  const size_t bytes = size_t{records} * kRecordBytes;
  const int fd = open(arguments[1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0 || fsync(fd) != 0) _exit(4);
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) _exit(5);
  char* const file = static_cast<char*>(mapped);
  for (unsigned version = 1;; ++version) {
    unsigned chosen[kOfTransaction];
    char line[200];
    int length = snprintf(line, sizeof line, "begin %u", version);
    for (unsigned& record : chosen) {
      record = random() % records;
      length += snprintf(line + length, sizeof line - static_cast<size_t>(length), " %u", record);
    }
    line[length++] = '\n';
    say(line, length);
    for (unsigned record : chosen)
      memset(file + size_t{record} * kRecordBytes, static_cast<int>(1 + version % 255), kRecordBytes);
    const unsigned how = random() % 4;
    if (how == 0) {
      if (msync(file, bytes, MS_SYNC) != 0) _exit(3);
    } else if (how == 1) {  // with what was stored to its mappings
      if (fsync(fd) != 0) _exit(3);
    } else {
      for (unsigned record : chosen) sync_record(file + size_t{record} * kRecordBytes);
    }
    say(line, snprintf(line, sizeof line, "done %u\n", version));
  }
}
