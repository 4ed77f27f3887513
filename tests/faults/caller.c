// What fail_nth.c knows of who makes a call.
#define _GNU_SOURCE
#include "caller.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kShortMax = 1 << 20, kPiecesMax = 64 };

// The dynamic linker of a process: looked for once after each exec.
enum { kProcessesMax = 16 };
static struct {
  pid_t id;
  uint64_t begin, end;
} linkers[kProcessesMax];

void forget_linker(pid_t id) {
  for (int i = 0; i < kProcessesMax; ++i)
    if (linkers[i].id == id) linkers[i].id = 0;
}

FILE* open_of(pid_t id, const char* name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", id, name);
  return fopen(path, "re");
}

pid_t process_of(pid_t thread) {
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

bool is_counted(pid_t process, const struct seccomp_data* call) {
  if (is_transfer(call->nr) && call->args[0] <= 2) return false;
  if (call->nr == SYS_mmap && (call->args[2] & PROT_EXEC) != 0) return false;
  if (call->nr == SYS_brk && call->args[0] == 0) return false;  // a question
  if (call->nr == SYS_munmap && !divides_an_area(process, call->args[0], call->args[0] + call->args[1]))
    return false;
  if (call->nr == SYS_fcntl && !can_fail(call->args[1], call->args[2])) return false;
  return !is_of_linker(process, call->instruction_pointer);
}

// What brk returns instead of an error: the break as it is.
int64_t break_of(pid_t process) {
  uint64_t begin, end = 0;
  FILE* maps = open_of(process, "maps");
  char line[512];
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
    if (strstr(line, "[heap]") != NULL && sscanf(line, "%lx-%lx", &begin, &end) != 2) end = 0;
  if (maps != NULL) fclose(maps);
  return (int64_t)end;
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
int64_t half_of(pid_t process, const struct seccomp_data* call) {
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
