// A file that is synced, with and without a change of it before.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "parts.h"

namespace {

constexpr int kRounds = 40;

void expect_zero(int result, const char* what) {
  if (result != 0) std::perror(what);
}

void put(int fd, long offset) {
  const std::string block(4096, 's');
  if (pwrite(fd, block.data(), block.size(), offset) != 4096) std::perror("pwrite");
}

int open_synced() {
  const int fd = open("synced.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
  for (int i = 0; i < 8; ++i) {
    put(fd, 0);
    expect_zero(fsync(fd), "fsync");
  }
  return fd;
}

// Nothing changes between two syncs.
int again(long) {
  const int fd = open_synced();
  for (int i = 0; i < kRounds; ++i) {
    put(fd, 4096L * i);
    expect_zero(fsync(fd), "fsync");
    expect_zero(i % 2 == 0 ? fsync(fd) : fdatasync(fd), "fsync");
  }
  return 0;
}

// A change of its own before each sync: by a write, by the kernel's calls, by another process.
int changed(long way) {
  const int fd = open_synced();
  for (int i = 0; i < kRounds; ++i) {
    const timespec times[2] = {{i, 0}, {i, 1}};
    switch (way) {
      case 0:
        put(fd, 0);
        break;
      case 1:
        expect_zero(fchmod(fd, i % 2 == 0 ? 0640 : 0600), "fchmod");
        break;
      case 2:
        expect_zero(futimens(fd, times), "futimens");
        break;
      case 3:
        expect_zero(i % 2 == 0 ? rename("synced.dat", "renamed.dat") : rename("renamed.dat", "synced.dat"),
                    "rename");
        break;
      case 4:
        expect_zero(ftruncate(fd, 4096L * (2 + i % 2)), "ftruncate");
        break;
      case 5:
        expect_zero(i % 2 == 0 ? link("synced.dat", "second.dat") : unlink("second.dat"), "link");
        break;
      case 6:
        expect_zero(fdatasync(fd), "fdatasync");  // of which fsync() needs more
        put(fd, 0);
        expect_zero(fdatasync(fd), "fdatasync");
        break;
      default:
        return 98;
    }
    expect_zero(fsync(fd), "fsync");
  }
  return 0;
}

constexpr Part kParts[] = {{"again", again}, {"changed", changed}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
