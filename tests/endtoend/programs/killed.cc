// Writes to a buffered file and syncs it until it is killed; what it says on standard output is the journal of what
// must be found then. A striped file ("striped:...") by Spillway's own functions, which are looked up, since a program
// that was not recompiled has them from a library that is loaded into it; any other one by POSIX's.
//
//     killed FILE SEED RECORDS
//
// "done V" is said after fsync. Some transactions make the file longer, some write with O_DSYNC instead.
#include <dlfcn.h>
#include <fcntl.h>
#include <spillway/spillway.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <random>

#include "journal.h"

namespace {

bool is_striped = false;

template <class Function>
Function* spillways(const char* name) {
  auto* found = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  if (!found) _exit(5);
  return found;
}

int open_file(const char* name, int flags) {
  static auto* const striped = is_striped ? spillways<decltype(spw_open)>("spw_open") : nullptr;
  return striped ? striped(name, flags, 0600) : open(name, flags, 0600);
}
int64_t write_at(int fd, const void* from, size_t bytes, off_t offset) {
  static auto* const striped = is_striped ? spillways<decltype(spw_pwrite)>("spw_pwrite") : nullptr;
  return striped ? striped(fd, from, bytes, offset) : pwrite(fd, from, bytes, offset);
}
int sync_file(int fd) {
  static auto* const striped = is_striped ? spillways<decltype(spw_fsync)>("spw_fsync") : nullptr;
  return striped ? striped(fd) : fsync(fd);
}
int sync_data(int fd) {
  static auto* const striped = is_striped ? spillways<decltype(spw_fdatasync)>("spw_fdatasync") : nullptr;
  return striped ? striped(fd) : fdatasync(fd);
}

void write_record(int fd, unsigned record, unsigned version) {
  char text[kRecordBytes];
  memset(text, byte_of(version), sizeof text);
  if (write_at(fd, text, sizeof text, static_cast<off_t>(record) * kRecordBytes) != int64_t{sizeof text})
    _exit(2);
}

}  // namespace

int main(int, char** arguments) {
  std::mt19937 random(static_cast<unsigned>(atoi(arguments[2])));
  const auto records_max = static_cast<unsigned>(atoi(arguments[3]));
  is_striped = strncmp(arguments[1], "striped:", strlen("striped:")) == 0;
  const int fd = open_file(arguments[1], O_RDWR | O_CREAT),
            synced = open_file(arguments[1], O_WRONLY | O_DSYNC);
  if (fd < 0 || synced < 0) _exit(4);
  unsigned records = 16;
  for (unsigned version = 1;; ++version) {
    if (records < records_max && random() % 4 == 0) records += random() % 512;
    const Transaction transaction(version, records, random);
    const bool by_itself = random() % 4 == 0;
    for (unsigned record : transaction) write_record(by_itself ? synced : fd, record, version);
    if (!by_itself && (random() % 2 == 0 ? sync_file(fd) : sync_data(fd)) != 0) _exit(3);
    transaction.done();
  }
}
