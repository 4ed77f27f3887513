// fail_nth OPTIONS -- PROGRAM ARGUMENT...: runs a program in which the Nth call of some system calls fails.
//
//   --calls NAME,NAME...  which calls are counted: names of kCalls below
//   --nth N               the first one that fails, counted from 1; 0: none, they are only counted
//   --times K             so many of them fail [1]; "all": those from the Nth on
//   --error NUMBER        the errno; or --short: the call moves half of what it was asked for (reads and writes)
//   --deny NAME,NAME...   calls that this kernel shall not have (ENOSYS); not counted
//   --record FILE         gets one line of JSON: how many calls there were, in all and of each name, how many failed,
//                         and the first that did
//   --stack               the record has words of that call's stack that point into a library of ours, as FILE+OFFSET
//
// The calls of all processes below are counted together, in the order in which they arrive. Not counted: those of the
// dynamic linker, which ends a program by words of its own; transfers of standard input, output and error, by which
// the program is judged; maps of executable code; and what fcntl and munmap do that cannot
// fail. A seccomp filter hands the
// calls over (SECCOMP_RET_USER_NOTIF): signals, faults and all other calls take their ordinary way, and nothing is
// traced.
// Exit status: the program's; 128 + the signal that ended it; 125: this did not work.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "caller.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

enum { kFailed = 125, kCallsMax = 64, kStackWords = 1024, kStackShown = 40 };

struct call {
  const char* name;
  int number;
};
#define CALL(name) {#name, SYS_##name}
static const struct call kCalls[] = {
    CALL(read),
    CALL(readv),
    CALL(pread64),
    CALL(preadv),
    CALL(preadv2),
    CALL(write),
    CALL(writev),
    CALL(pwrite64),
    CALL(pwritev),
    CALL(pwritev2),
    CALL(fsync),
    CALL(fdatasync),
    CALL(msync),
    CALL(sync_file_range),
    CALL(fallocate),
    CALL(open),
    CALL(openat),
    CALL(ftruncate),
    CALL(mmap),
    CALL(munmap),
    CALL(mremap),
    CALL(mprotect),
    CALL(madvise),
    CALL(brk),
    CALL(userfaultfd),
    CALL(ioctl),
    CALL(memfd_create),
    CALL(clone),
    CALL(clone3),
    CALL(io_uring_setup),
    CALL(io_uring_enter),
    CALL(io_uring_register),
    CALL(io_setup),
    CALL(io_submit),
    CALL(io_getevents),
    CALL(fstat),
    CALL(newfstatat),
    CALL(statx),
    CALL(fstatfs),
    CALL(fcntl),
    CALL(flock),
    CALL(prctl),
    CALL(rt_sigaction),
    CALL(sigaltstack),
    CALL(eventfd2),
    CALL(epoll_create1),
    CALL(pipe2),
    CALL(dup),
    CALL(dup3),
    CALL(close),
    CALL(membarrier),
    CALL(getrandom),
    CALL(mlock),
    CALL(lseek),
    CALL(sched_getaffinity),
    CALL(getpgid),
};
enum { kCallCount = sizeof kCalls / sizeof kCalls[0] };

static struct {
  int numbers[kCallsMax], denied[kCallsMax];
  int count, denied_count;
  uint64_t nth;
  uint64_t times;
  int error;
  bool shortens;
  bool shows_stack;
  const char* record;
} options = {.times = 1};

// What is recorded.
static uint64_t seen, failed, seen_of[kCallCount];
static char first_failed[512], first_stack[8192];

static void die(const char* what) {
  fprintf(stderr, "fail_nth: %s: %s\n", what, strerror(errno));
  exit(kFailed);
}

static void usage(const char* what) {
  fprintf(stderr, "fail_nth: %s; the head of fail_nth.c says what there is\n", what);
  exit(kFailed);
}

static const char* name_of(int number) {
  for (int i = 0; i < kCallCount; ++i)
    if (kCalls[i].number == number) return kCalls[i].name;
  return "?";
}

static void take_calls(char* names, int* numbers, int* count) {
  for (char* name = strtok(names, ","); name != NULL; name = strtok(NULL, ",")) {
    int number = -1;
    for (int i = 0; i < kCallCount; ++i)
      if (strcmp(kCalls[i].name, name) == 0) number = kCalls[i].number;
    if (number < 0 || *count == kCallsMax) usage(name);
    numbers[(*count)++] = number;
  }
}

static uint64_t number_of(const char* text) {
  char* end;
  const uint64_t number = strtoull(text, &end, 10);
  if (*text == 0 || *end != 0) usage(text);
  return number;
}

// Where the program's own words begin.
static char** take_options(char** words) {
  for (; *words != NULL; ++words) {
    if (strcmp(*words, "--") == 0) return words + 1;
    if (strcmp(*words, "--short") == 0) {
      options.shortens = true;
      continue;
    }
    if (strcmp(*words, "--stack") == 0) {
      options.shows_stack = true;
      continue;
    }
    const char* option = *words++;
    if (*words == NULL) usage(option);
    if (strcmp(option, "--calls") == 0)
      take_calls(*words, options.numbers, &options.count);
    else if (strcmp(option, "--deny") == 0)
      take_calls(*words, options.denied, &options.denied_count);
    else if (strcmp(option, "--nth") == 0)
      options.nth = number_of(*words);
    else if (strcmp(option, "--times") == 0)
      options.times = strcmp(*words, "all") == 0 ? UINT64_MAX : number_of(*words);
    else if (strcmp(option, "--error") == 0)
      options.error = (int)number_of(*words);
    else if (strcmp(option, "--record") == 0)
      options.record = *words;
    else
      usage(option);
  }
  usage("no program");
  return NULL;
}

// ---- The filter ----

// The calls go to the listener, and so does execve; all others are let through.
static int install_filter(void) {
  struct sock_filter code[kCallsMax * 4 + 8];
  unsigned short at = 0;
  code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
  code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
  code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int i = 0; i < options.denied_count; ++i) {
    code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)options.denied[i], 0, 1);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
  }
  for (int i = 0; i <= options.count; ++i) {
    const unsigned number = (unsigned)(i < options.count ? options.numbers[i] : SYS_execve);
    code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
  }
  code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {.len = at, .filter = code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) die("no_new_privs");
  // A call that has been handed over is not begun again by a signal, or it would be counted twice.
  const long fd =
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
              SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
  if (fd < 0) die("seccomp (it takes Linux 5.19)");
  return (int)fd;
}

union one_descriptor {
  struct cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

static void send_descriptor(int to, int fd) {
  char byte = 0;
  struct iovec data = {&byte, 1};
  union one_descriptor control = {0};
  struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (sendmsg(to, &message, 0) < 0) die("sendmsg");
}

static int receive_descriptor(int from) {
  char byte;
  struct iovec data = {&byte, 1};
  union one_descriptor control = {0};
  struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) <= 0 || CMSG_FIRSTHDR(&message) == NULL)
    exit(kFailed);  // it has said why
  int fd;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

// ---- The record ----

// Words of the stack that look like return addresses into our libraries or the program.
static void note_stack(pid_t thread, pid_t process) {
  FILE* at = open_of(thread, "syscall");
  uint64_t args[6], stack = 0, pc = 0;
  long number;
  if (at == NULL || fscanf(at, "%ld %lx %lx %lx %lx %lx %lx %lx %lx", &number, &args[0], &args[1], &args[2],
                           &args[3], &args[4], &args[5], &stack, &pc) != 9)
    return;
  fclose(at);
  static uint64_t words[kStackWords];
  struct iovec to = {words, sizeof words}, from = {(void*)stack, sizeof words};
  ssize_t got = process_vm_readv(process, &to, 1, &from, 1, 0);
  for (size_t bytes = sizeof words; got < 0 && bytes > kPage / 8; bytes /= 2) {
    to.iov_len = from.iov_len = bytes;
    got = process_vm_readv(process, &to, 1, &from, 1, 0);
  }
  static struct {
    uint64_t begin, end, offset;
    char file[256];
  } ranges[64];
  int count = 0;
  FILE* maps = open_of(process, "maps");
  char line[512];
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL && count < 64) {
    char rights[8];
    if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %255s", &ranges[count].begin, &ranges[count].end, rights,
               &ranges[count].offset, ranges[count].file) == 5 &&
        rights[2] == 'x' && ranges[count].file[0] == '/' &&
        strstr(ranges[count].file, "x86_64-linux-gnu") == NULL)
      ++count;
  }
  if (maps != NULL) fclose(maps);
  int shown = 0;
  size_t length = 0;
  for (ssize_t i = 0; i < got / 8 && shown < kStackShown; ++i)
    for (int r = 0; r < count; ++r)
      if (ranges[r].begin <= words[i] && words[i] < ranges[r].end && length + 300 < sizeof first_stack) {
        length += (size_t)sprintf(first_stack + length, "%s+0x%lx ", ranges[r].file,
                                  words[i] - ranges[r].begin + ranges[r].offset);
        ++shown;
      }
}

static void note_failure(const struct seccomp_notif* call, pid_t process) {
  if (failed++ != 0) return;
  char thread[32] = "?";
  FILE* comm = open_of((pid_t)call->pid, "comm");
  if (comm != NULL) {
    if (fgets(thread, sizeof thread, comm) != NULL) thread[strcspn(thread, "\n\"\\")] = 0;
    fclose(comm);
  }
  const __u64* a = call->data.args;
  snprintf(first_failed, sizeof first_failed, "%s(0x%llx, 0x%llx, 0x%llx, 0x%llx, 0x%llx) of %s",
           name_of(call->data.nr), a[0], a[1], a[2], a[3], a[4], thread);
  if (options.shows_stack) note_stack((pid_t)call->pid, process);
}

static void write_record(void) {
  if (options.record == NULL) return;
  FILE* file = fopen(options.record, "we");
  if (file == NULL) die(options.record);
  fprintf(file, "{\"seen\": %lu, \"failed\": %lu, \"first\": \"%s\", \"stack\": \"%s\"", seen, failed,
          first_failed, first_stack);
  for (int i = 0; i < kCallCount; ++i) fprintf(file, ", \"%s\": %lu", kCalls[i].name, seen_of[i]);
  fputs("}\n", file);
  if (fclose(file) != 0) die(options.record);
}

// ---- The loop ----

static void decide(const struct seccomp_notif* call, struct seccomp_notif_resp* answer) {
  answer->id = call->id;
  answer->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  const pid_t process = process_of((pid_t)call->pid);
  if (call->data.nr == SYS_execve) return forget_linker(process);
  if (!is_counted(process, &call->data)) return;
  ++seen;
  for (int i = 0; i < kCallCount; ++i)
    if (kCalls[i].number == call->data.nr) ++seen_of[i];
  if (options.nth == 0 || seen < options.nth || seen - options.nth >= options.times) return;
  int64_t half = 0;
  if (options.shortens && (half = half_of(process, &call->data)) < 0) return;
  note_failure(call, process);
  answer->flags = 0;
  answer->error = options.shortens || call->data.nr == SYS_brk ? 0 : -options.error;
  answer->val = call->data.nr == SYS_brk ? break_of(process) : half;
}

static void serve(int listener) {
  for (;;) {
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    if (poll(&wait, 1, -1) < 0) continue;
    if ((wait.revents & POLLIN) == 0) return;  // nobody is left
    struct seccomp_notif call = {0};
    struct seccomp_notif_resp answer = {0};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;  // the caller was killed
    decide(&call, &answer);
    (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
}

int main(int argc, char** argv) {
  (void)argc;
  char** program = take_options(argv + 1);
  if (*program == NULL || options.count == 0) usage("no program, or no calls");
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) die("socketpair");
  const pid_t child = fork();
  if (child < 0) die("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int listener = install_filter();
    send_descriptor(pair[1], listener);
    syscall(SYS_close, listener);
    execvp(program[0], program);
    die(program[0]);
  }
  close(pair[1]);
  serve(receive_descriptor(pair[0]));
  int status;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  write_record();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
