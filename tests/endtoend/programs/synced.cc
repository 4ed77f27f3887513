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

#include "journal.h"

namespace {

constexpr uintptr_t kPageBytes = 4096;

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
    const Transaction transaction(version, records, random);
    for (unsigned record : transaction)
      memset(file + size_t{record} * kRecordBytes, byte_of(version), kRecordBytes);
    const unsigned how = random() % 4;
    if (how == 0) {
      if (msync(file, bytes, MS_SYNC) != 0) _exit(3);
    } else if (how == 1) {  // with what was stored to its mappings
      if (fsync(fd) != 0) _exit(3);
    } else {
      for (unsigned record : transaction) sync_record(file + size_t{record} * kRecordBytes);
    }
    transaction.done();
  }
}
