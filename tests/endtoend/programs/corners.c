/* What programs seldom do: what they find then is what they find natively. corners CASE */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <malloc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#ifndef SO_ZEROCOPY
#define SO_ZEROCOPY 60
#endif
#ifndef MSG_ZEROCOPY
#define MSG_ZEROCOPY 0x4000000
#endif

enum { kPage = 4096, kBytes = 40 << 20 };
static char* volatile g_all;

static char* fresh(size_t bytes) {
  char* made = malloc(bytes);
  if (made == NULL) exit(99);
  memset(made, 1, bytes);
  return made;
}

/* Everything else is evicted. */
static void press(void) {
  char* volatile all = fresh(kBytes);
  for (size_t at = 0; at < kBytes; at += kPage) all[at]++;
}

static void errno_of_the_start(int at_start) {
  printf("errno at the start %d\n", at_start);
  errno = 0;
  char* made = malloc(kBytes);
  printf("after an allocation %d, %d\n", made != NULL, errno);
}

static void alignments(void) {
  const size_t of[] = {0, 1, 3, 24, 48, 4097, 100000, ((size_t)1 << 63) + 1, SIZE_MAX};
  for (size_t i = 0; i < sizeof of / sizeof *of; ++i) {
    for (int which = 0; which < 2; ++which) {
      errno = 0;
      char* volatile made = which == 0 ? memalign(of[i], 8 << 20) : aligned_alloc(of[i], 8 << 20);
      printf("%zu: %d, %d\n", of[i], made != NULL, errno);
      if (made != NULL) made[(8 << 20) - 1] = 1;
      free(made);
    }
  }
  errno = 0;
  void* none = pvalloc(SIZE_MAX);
  printf("pvalloc %d, %d\n", none == NULL, errno);
}

static void stream_buffers(void) {
  for (int which = 0; which < 2; ++which) {
    FILE* file = tmpfile();
    char* buffer = fresh(16 << 20);
    if (which == 0)
      setbuffer(file, buffer, 16 << 20);
    else
      setbuf(file, buffer);
    char* data = fresh(8 << 20);
    printf("written %zu\n", fwrite(data, 1, 8 << 20, file));
    press();
    printf("flushed %d\n", fflush(file));
    printf("at %ld\n", lseek(fileno(file), 0, SEEK_END));
    rewind(file);
    printf("read %zu\n", fread(data, 1, 8 << 20, file));
    printf("closed %d\n", fclose(file));
    free(buffer);
  }
}

static void many_descriptors(void) {
  struct rlimit most;
  getrlimit(RLIMIT_NOFILE, &most);
  most.rlim_cur = most.rlim_max < 4096 ? most.rlim_max : 4096;
  setrlimit(RLIMIT_NOFILE, &most);
  int ends[2];
  if (pipe(ends) != 0 || write(ends[1], "x", 1) != 1) exit(99);
  for (int fd = 3; fd < (int)most.rlim_cur; fd = fd * 2 + 1) {
    if (dup2(ends[0], fd) != fd) continue;
    const size_t bytes = (fd / 64 + 1) * 8;
    unsigned long* sets = (unsigned long*)fresh(8 << 20);
    memset(sets, 0, bytes);
    sets[fd / 64] |= 1ul << (fd % 64);
    struct timeval none = {0, 0};
    printf("%d: %d", fd, select(fd + 1, (fd_set*)sets, NULL, NULL, &none));
    printf(", %lx, %lx\n", sets[fd / 64], sets[bytes / 8]);
    free(sets);
  }
}

/* More extents than what the request's number says. */
static void extents_of_a_file(void) {
  FILE* file = tmpfile();
  const int fd = fileno(file), extents = 300;
  char* page = fresh(kPage);
  for (int i = 0; i < extents; ++i)
    if (pwrite(fd, page, kPage, (off_t)2 * i * kPage) != kPage) exit(99);
  fsync(fd);
  const size_t bytes = sizeof(struct fiemap) + extents * sizeof(struct fiemap_extent);
  struct fiemap* map = (struct fiemap*)fresh(8 << 20);
  memset(map, 0, bytes);
  map->fm_length = UINT64_MAX;
  map->fm_extent_count = extents;
  const int done = ioctl(fd, FS_IOC_FIEMAP, map);
  printf("%d, %u", done, done == 0 ? map->fm_mapped_extents : 0);
  uint64_t sum = 0;
  for (unsigned i = 0; done == 0 && i < map->fm_mapped_extents; ++i) sum += map->fm_extents[i].fe_logical;
  printf(", %lu\n", (unsigned long)sum);
}

static void sent_without_a_copy(void) {
  int listening = socket(AF_INET, SOCK_STREAM, 0), one = 1, small = 8192, large = 4 << 20;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t bytes = sizeof address;
  bind(listening, (struct sockaddr*)&address, bytes);
  listen(listening, 1);
  getsockname(listening, (struct sockaddr*)&address, &bytes);
  const int from = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(from, SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
  setsockopt(listening, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  if (connect(from, (struct sockaddr*)&address, bytes) != 0) exit(99);
  const int to = accept(listening, NULL, NULL);
  printf("option %d\n", setsockopt(from, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one));
  uint32_t* numbers = (uint32_t*)fresh(8 << 20);
  for (uint32_t i = 0; i < (8 << 20) / 4; ++i) numbers[i] = i;
  size_t sent = 0, got = 0, wrong = 0;
  for (int calls = 0; sent < 8 << 20; ++calls) {
    const size_t piece = (8 << 20) - sent < 65536 ? (8 << 20) - sent : 65536;
    struct iovec part = {(char*)numbers + sent, piece};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    const ssize_t now = calls % 2 == 0 ? send(from, part.iov_base, piece, MSG_ZEROCOPY | MSG_DONTWAIT)
                                       : sendmsg(from, &message, MSG_ZEROCOPY | MSG_DONTWAIT);
    if (now < 0) break;
    sent += (size_t)now;
  }
  shutdown(from, SHUT_WR);
  static char received[65536];
  for (ssize_t now; (now = recv(to, received, sizeof received, 0)) > 0; got += (size_t)now)
    for (ssize_t i = 0; i < now; ++i) wrong += received[i] != ((char*)numbers)[got + (size_t)i];
  printf("all of it %d, wrong %zu\n", sent > 0 && got == sent, wrong);
}

static void seldom_called(void) {
  char* room = fresh(8 << 20);
  press();
  strcpy(room, "/");
  printf("eaccess %d, %d\n", eaccess(room, R_OK), euidaccess(room, R_OK));
  struct sched_param* none = (struct sched_param*)(room + kPage);
  none->sched_priority = 0;
  press();
  printf("scheduling %d\n", pthread_setschedparam(pthread_self(), SCHED_OTHER, none));
  struct timespec* moment = (struct timespec*)(room + 2 * kPage);
  moment->tv_sec = 0, moment->tv_nsec = 1000;
  press();
  printf("sleep %d\n", thrd_sleep(moment, NULL));
  const int set = semget(IPC_PRIVATE, 5, 0600);
  unsigned short* values = (unsigned short*)(room + 3 * kPage);
  for (unsigned short i = 0; i < 5; ++i) values[i] = (unsigned short)(i * 3);
  press();
  printf("set all %d", semctl(set, 0, SETALL, values));
  memset(values, 0, 10);
  press();
  printf(", get all %d", semctl(set, 0, GETALL, values));
  struct semid_ds* about = (struct semid_ds*)(room + 4 * kPage);
  const int looked = semctl(set, 0, IPC_STAT, about);
  printf(", stat %d: %d %d, %lu", looked, values[1], values[4], about->sem_nsems);
  printf(", %d", semctl(set, 4, GETVAL));
  printf(", removed %d\n", semctl(set, 0, IPC_RMID));
  gid_t* groups = (gid_t*)(room + 5 * kPage);
  const int count = getgroups(1000, groups);
  press();
  printf("groups %d\n", geteuid() != 0 || setgroups((size_t)count, groups) == 0);
}

static int g_receives;
static void* receive_all(void* got) {
  static char room[65536];
  for (ssize_t now; (now = read(g_receives, room, sizeof room)) > 0;)
    for (ssize_t i = 0; i < now; ++i) *(uint64_t*)got = *(uint64_t*)got * 31 + (unsigned char)room[i];
  return NULL;
}

/* A blocking stream takes all of a message, however large. */
static void sent_whole(void) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) exit(99);
  g_receives = ends[1];
  uint32_t* numbers = (uint32_t*)fresh(8 << 20);
  for (uint32_t i = 0; i < (8 << 20) / 4; ++i) numbers[i] = i * i;
  uint64_t got = 0;
  pthread_t thread;
  pthread_create(&thread, NULL, receive_all, &got);
  struct iovec parts[2] = {{numbers, 3000001}, {numbers + 1000, 4000003}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  printf("sent %zd", sendmsg(ends[0], &message, 0));
  shutdown(ends[0], SHUT_WR);
  pthread_join(thread, NULL);
  printf(", got %lx\n", (unsigned long)got);
}

/* What is the process's own in /proc is root's then. */
static void forks_undumped(void) {
  g_all = fresh(kBytes);
  for (size_t at = 0; at < kBytes; at += kPage) g_all[at] = (char)(at / kPage);
  if (geteuid() == 0 ? setgid(65534) != 0 || setuid(65534) != 0 : prctl(PR_SET_DUMPABLE, 0) != 0) exit(99);
  for (int again = 0; again < 2; ++again) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      long wrong = 0;
      for (size_t at = 0; at < kBytes; at += kPage) wrong += g_all[at] != (char)(at / kPage);
      printf("wrong %ld, dumped %d\n", wrong, prctl(PR_GET_DUMPABLE));
      exit(3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("status %x, dumped %d\n", (unsigned)status, prctl(PR_GET_DUMPABLE));
  }
}

/* No cancellation point. */
static void* touch_all(void* unused) {
  for (int round = 0; round < 4; ++round) {
    for (size_t at = 0; at < kBytes; at += kPage) g_all[at]++;
    char* volatile more = malloc(4 << 20);
    for (size_t at = 0; at < 4 << 20; at += kPage) more[at] = 1;
    free((char*)more);
  }
  return unused;
}

static FILE* g_stream;
static void* read_stream(void* unused) {
  char* into = fresh(4 << 20);
  printf("%zu\n", fread(into, 1, 4 << 20, g_stream));
  return unused;
}

static void cancelled(void) {
  g_all = fresh(kBytes);
  for (int again = 0; again < 6; ++again) {
    pthread_t thread;
    void* result;
    pthread_create(&thread, NULL, touch_all, NULL);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cancelled %d\n", result == PTHREAD_CANCELED);
  }
  int ends[2];
  if (pipe(ends) != 0) exit(99);
  g_stream = fdopen(ends[0], "r");
  for (int again = 0; again < 20; ++again) {
    pthread_t thread;
    void* result;
    pthread_create(&thread, NULL, read_stream, NULL);
    usleep(20000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cancelled %d", result == PTHREAD_CANCELED);
    if (write(ends[1], "x", 1) != 1) exit(99);
    printf(", %d\n", getc(g_stream));
  }
}

static void* work_for_a_while(void* unused) {
  char* all = fresh(kBytes);
  usleep(100000);
  printf("worked, %d\n", all[kBytes - 1]);
  return unused;
}

static void at_the_end(void) { puts("the end"); }

/* The process ends with the last of its threads. */
static void main_ends_first(void) {
  atexit(at_the_end);
  for (int i = 0; i < 3; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, work_for_a_while, NULL);
  }
  pthread_exit(NULL);
}

static void main_ends_alone(void) {
  atexit(at_the_end);
  g_all = fresh(kBytes);
  pthread_exit(NULL);
}

int main(int argc, char** argv) {
  const int at_start = errno;
  const char* which = argc > 1 ? argv[1] : "";
  if (strcmp(which, "errno") == 0) errno_of_the_start(at_start);
  if (strcmp(which, "alignments") == 0) alignments();
  if (strcmp(which, "stream_buffers") == 0) stream_buffers();
  if (strcmp(which, "many_descriptors") == 0) many_descriptors();
  if (strcmp(which, "extents") == 0) extents_of_a_file();
  if (strcmp(which, "zerocopy") == 0) sent_without_a_copy();
  if (strcmp(which, "seldom_called") == 0) seldom_called();
  if (strcmp(which, "forks_undumped") == 0) forks_undumped();
  if (strcmp(which, "sent_whole") == 0) sent_whole();
  if (strcmp(which, "cancelled") == 0) cancelled();
  if (strcmp(which, "main_ends_first") == 0) main_ends_first();
  if (strcmp(which, "main_ends_alone") == 0) main_ends_alone();
  return 0;
}
