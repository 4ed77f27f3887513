// Waits until another thread of the program has got to where it sleeps, instead of for a while in which it surely has.
#ifndef ASLEEP_H
#define ASLEEP_H

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>

namespace {

constexpr int kLooksAsleep = 20, kLooksMax = 20'000;
constexpr unsigned kBetweenLooksUs = 1000;

// `thread`: its gettid(); 0: not known yet. It sleeps when many looks in a row find it in the same system call with the
// same arguments. A page fault that is being served is none. After kLooksMax looks this says so, and returns.
[[maybe_unused]] void await_asleep(const std::atomic<pid_t>& thread) {
  char before[256] = "", now[256];
  int in_a_row = 0;
  for (int looks = 0; looks < kLooksMax && in_a_row < kLooksAsleep; ++looks) {
    usleep(kBetweenLooksUs);
    if (thread == 0) continue;
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%d/syscall", static_cast<int>(thread));
    const int file = open(path, O_RDONLY);
    const ssize_t got = file < 0 ? -1 : read(file, now, sizeof now - 1);
    if (file >= 0) close(file);
    now[got > 0 ? got : 0] = '\0';
    const bool in_a_call = now[0] >= '0' && now[0] <= '9';  // else "running", or "-1" in a fault
    in_a_row = in_a_call && std::strcmp(now, before) == 0 ? in_a_row + 1 : 0;
    std::strcpy(before, now);
  }
  if (in_a_row < kLooksAsleep) std::printf("a thread does not get to where it sleeps: %s\n", before);
}

}  // namespace

#endif
