// A child of a process with locked memory locks some itself, keeps some out of dumps, and forks, at its first moment
// and at any other: each ends.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "parts.h"

namespace {

constexpr size_t kBytes = size_t{64} << 20, kPage = 4096;
constexpr unsigned kSecondsMax = 60;

unsigned char* memory() {
  void* made = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(made, 1, kBytes);
  return static_cast<unsigned char*>(made);
}

// How many of `count` children do not end well by in_child(index).
template <class InChild>
int run(int count, InChild in_child) {
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kSecondsMax);
      _exit(in_child(i) ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    wrong += status != 0;
  }
  printf("%d wrong\n", wrong);
  return wrong;
}

int locks(long) {
  unsigned char* of_parent = memory();
  printf("mlock %d\n", mlock(of_parent, kPage));
  return run(5, [&](int) { return mlock(of_parent + 2 * kPage, kPage) == 0 && of_parent[3 * kPage] == 1; });
}

int keeps_from_dumps(long) {
  unsigned char* of_parent = memory();
  return run(5, [&](int) { return madvise(of_parent + kBytes / 2, 16 * kPage, MADV_DONTDUMP) == 0; });
}

int forks(long) {
  unsigned char* of_parent = memory();
  printf("mlock %d\n", mlock(of_parent, kPage));
  printf("madvise %d\n", madvise(of_parent + kBytes / 2, kPage, MADV_DONTDUMP));
  return run(30, [&](int i) {
    usleep(static_cast<useconds_t>(i) * 4000);
    const pid_t child = fork();
    if (child == 0) _exit(of_parent[kBytes / 3] != 1);
    int status = 0;
    waitpid(child, &status, 0);
    return status == 0;
  });
}

constexpr Part kParts[] = {{"locks", locks}, {"keeps_from_dumps", keeps_from_dumps}, {"forks", forks}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
