// Calls that wait and get no signal: none of them is interrupted, whatever the thread that waits has caused to be read
// and written before. Of the three, none is started again by the kernel.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <time.h>

enum { kData = 48 << 20, kPage = 4096, kPagesEach = 64, kRounds = 600, kWaitNs = 1000 * 1000 };

static int in_epoll(void) {
  static int descriptor = -1;
  if (descriptor < 0) descriptor = epoll_create1(0);
  struct epoll_event event;
  return epoll_wait(descriptor, &event, 1, kWaitNs / 1000000);
}

static int semaphores;

static int in_semop(void) {
  struct sembuf take = {0, -1, 0};
  const struct timespec limit = {0, kWaitNs};
  return semtimedop(semaphores, &take, 1, &limit);
}

static int in_sigtimedwait(void) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  const struct timespec limit = {0, kWaitNs};
  return sigtimedwait(&one, NULL, &limit);
}

int main(void) {
  static const struct {
    const char* name;
    int (*wait)(void);
  } waits[] = {{"epoll_wait", in_epoll}, {"semtimedop", in_semop}, {"sigtimedwait", in_sigtimedwait}};
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  sigprocmask(SIG_BLOCK, &one, NULL);
  semaphores = semget(IPC_PRIVATE, 1, 0600);
  char* const data = malloc(kData);
  memset(data, 1, kData);
  int interrupted[3] = {0};
  size_t at = 0;
  for (int i = 0; i < kRounds; ++i) {
    for (int page = 0; page < kPagesEach; ++page, at = (at + kPage) % kData) ++data[at];
    interrupted[i % 3] += waits[i % 3].wait() < 0 && errno == EINTR;
  }
  for (int i = 0; i < 3; ++i) printf("%s: interrupted %d times\n", waits[i].name, interrupted[i]);
  semctl(semaphores, 0, IPC_RMID);
  return 0;
}
