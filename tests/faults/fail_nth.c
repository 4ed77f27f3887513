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

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

enum {
  kFailed = 125,
  kCallsMax = 64,
  kStackWords = 1024,
  kStackShown = 40,
  kShortMax = 1 << 20,
  kPage = 4096,
  kPiecesMax = 64
};

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

// ---- The caller ----

// The dynamic linker of a process: looked for once after each exec.
enum { kProcessesMax = 16 };
static struct {
  pid_t id;
  uint64_t begin, end;
} linkers[kProcessesMax];

static void forget_linker(pid_t id) {
  for (int i = 0; i < kProcessesMax; ++i)
    if (linkers[i].id == id) linkers[i].id = 0;
}

static FILE* open_of(pid_t id, const char* name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", id, name);
  return fopen(path, "re");
}

static pid_t process_of(pid_t thread) {
  FILE* status = open_of(thread, "status");
  int id = thread;
  char line[256];
  while (status != NULL && fgets(line, sizeof line, status) != NULL)
    if (sscanf(line, "Tgid: %d", &id) == 1) break;
  if (status != NULL) fclose(status);
  return id;
}

static bool is_of_linker(pid_t process, uint64_t address) {
  int slot = 0;
  for (int i = 0; i < kProcessesMax; ++i) {
    if (linkers[i].id == process) return linkers[i].begin <= address && address < linkers[i].end;
    if (linkers[i].id == 0) slot = i;
  }
  linkers[slot].id = process;
  linkers[slot].begin = linkers[slot].end = 0;
  FILE* maps = open_of(process, "maps");
  char line[512];
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    uint64_t begin, end;
    char rights[8];
    if (strstr(line, "/ld-linux") == NULL || sscanf(line, "%lx-%lx %7s", &begin, &end, rights) != 3 ||
        rights[2] != 'x')
      continue;
    linkers[slot].begin = begin;
    linkers[slot].end = end;
  }
  if (maps != NULL) fclose(maps);
  return linkers[slot].begin <= address && address < linkers[slot].end;
}

static bool is_transfer(int number) {
  switch (number) {
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_preadv:
    case SYS_preadv2:
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_pwritev2:
      return true;
    default:
      return false;
  }
}

// Whether a range begins or ends within an area: to unmap a whole one takes no memory and cannot fail, and glibc aborts
// where it does.
static bool divides_an_area(pid_t process, uint64_t begin, uint64_t end) {
  bool divides = false;
  FILE* maps = open_of(process, "maps");
  char line[512];
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    uint64_t from, to;
    if (sscanf(line, "%lx-%lx", &from, &to) == 2)
      divides |= (from < begin && begin < to) || (from < end && end < to);
  }
  if (maps != NULL) fclose(maps);
  return divides;
}

// Of what fcntl does to a descriptor that is good.
static bool can_fail(uint64_t command, uint64_t argument) {
  return command == F_DUPFD || command == F_DUPFD_CLOEXEC || command == F_OFD_SETLK ||
         command == F_OFD_SETLKW || (command == F_SETLEASE && argument != F_UNLCK);
}

static bool is_counted(pid_t process, const struct seccomp_data* call) {
  if (is_transfer(call->nr) && call->args[0] <= 2) return false;
  if (call->nr == SYS_mmap && (call->args[2] & PROT_EXEC) != 0) return false;
  if (call->nr == SYS_brk && call->args[0] == 0) return false;  // a question
  if (call->nr == SYS_munmap && !divides_an_area(process, call->args[0], call->args[0] + call->args[1]))
    return false;
  if (call->nr == SYS_fcntl && !can_fail(call->args[1], call->args[2])) return false;
  return !is_of_linker(process, call->instruction_pointer);
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

// ---- Half of a transfer ----

// The memory of a transfer in its process: one piece, or those of its vector. 0: there are too many.
static int pieces_of(pid_t process, const struct seccomp_data* call, struct iovec* pieces) {
  if (call->nr == SYS_read || call->nr == SYS_write || call->nr == SYS_pread64 || call->nr == SYS_pwrite64) {
    pieces[0] = (struct iovec){(void*)call->args[1], call->args[2]};
    return 1;
  }
  const size_t bytes = call->args[2] * sizeof *pieces;
  struct iovec ours = {pieces, bytes}, theirs = {(void*)call->args[1], bytes};
  if (call->args[2] > kPiecesMax || process_vm_readv(process, &ours, 1, &theirs, 1, 0) != (ssize_t)bytes)
    return 0;
  return (int)call->args[2];
}

// Cuts the pieces behind half of their bytes, which are as many as it returns; 0: they cannot be halved.
static size_t halve(struct iovec* pieces, int* count) {
  size_t whole = 0, half;
  for (int i = 0; i < *count; ++i) whole += pieces[i].iov_len;
  half = whole % kPage == 0 ? whole / 2 / kPage * kPage : whole / 2;
  if (half == 0 || half > kShortMax) return 0;
  size_t left = half;
  for (int i = 0; i < *count; ++i) {
    if (pieces[i].iov_len > left) pieces[i].iov_len = left;
    left -= pieces[i].iov_len;
    if (left == 0) *count = i + 1;
  }
  return half;
}

// Makes half of the read or write in the caller's place; -1: it cannot be halved.
static int64_t half_of(pid_t process, const struct seccomp_data* call) {
  static char bytes[kShortMax] __attribute__((aligned(4096)));
  struct iovec pieces[kPiecesMax];
  const bool writes = call->nr == SYS_pwrite64 || call->nr == SYS_write || call->nr == SYS_pwritev ||
                      call->nr == SYS_writev || call->nr == SYS_pwritev2;
  const bool placed =
      call->nr != SYS_read && call->nr != SYS_write && call->nr != SYS_readv && call->nr != SYS_writev;
  if (!is_transfer(call->nr)) return -1;
  int count = pieces_of(process, call, pieces);
  const size_t half = halve(pieces, &count);
  if (half == 0) return -1;
  const int pidfd = (int)syscall(SYS_pidfd_open, process, 0);
  const int fd = (int)syscall(SYS_pidfd_getfd, pidfd, (int)call->args[0], 0);
  close(pidfd);
  if (fd < 0) return -1;
  struct iovec ours = {bytes, half};
  const off_t offset = (off_t)call->args[3];
  int64_t done = (int64_t)half;
  if (writes) done = process_vm_readv(process, &ours, 1, pieces, (unsigned long)count, 0);
  if (done == (int64_t)half) {
    if (writes)
      done = placed ? pwrite(fd, bytes, half, offset) : write(fd, bytes, half);
    else
      done = placed ? pread(fd, bytes, half, offset) : read(fd, bytes, half);
  }
  ours.iov_len = done > 0 ? (size_t)done : 0;
  if (!writes && done > 0 && process_vm_writev(process, &ours, 1, pieces, (unsigned long)count, 0) != done)
    done = -1;
  close(fd);
  return done;
}

// ---- The loop ----

// What brk returns instead of an error: the break as it is.
static int64_t break_of(pid_t process) {
  uint64_t begin, end = 0;
  FILE* maps = open_of(process, "maps");
  char line[512];
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
    if (strstr(line, "[heap]") != NULL && sscanf(line, "%lx-%lx", &begin, &end) != 2) end = 0;
  if (maps != NULL) fclose(maps);
  return (int64_t)end;
}

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
