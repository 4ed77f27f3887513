// System calls without libc's functions, whose arguments lie in managed memory that nobody has touched since it was
// evicted, or ever (see tests/endtoend/test_raw_calls.py): by an instruction here, in a library, and by syscall(2).
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "fresh.h"
#include "parts.h"
#include "raw_call.h"

extern "C" long call_of_library(long number, long a, long b, long c, long d, long e, long f);

namespace {

long call_of_libc(long number, long a, long b, long c, long d, long e, long f) {
  const long result = syscall(number, a, b, c, d, e, f);
  return result == -1 ? -errno : result;
}

using Caller = long (*)(long, long, long, long, long, long, long);
constexpr Caller kCallers[] = {&raw_call, &call_of_library, &call_of_libc};
Caller caller = &raw_call;

long number_of(long value) { return value; }
template <class T>
long number_of(T* pointer) {
  return reinterpret_cast<long>(pointer);
}
template <class... Arguments>
long call(long number, Arguments... arguments) {
  long all[6] = {};
  size_t count = 0;
  ((all[count++] = number_of(arguments)), ...);
  return caller(number, all[0], all[1], all[2], all[3], all[4], all[5]);
}

// Errors are results here.
void tell(const char* name, long result) { std::printf("%s %ld\n", name, result); }

constexpr size_t kBytes = 3 << 20;

char letter(size_t i) { return static_cast<char>('a' + (i / 4096 + i) % 23); }
char* filled(size_t bytes) {
  char* room = fresh<char>(bytes);
  for (size_t i = 0; i < bytes; ++i) room[i] = letter(i);
  return room;
}
size_t wrong(const char* bytes, size_t count) {
  size_t found = 0;
  for (size_t i = 0; i < count; ++i) found += bytes[i] != letter(i);
  return found;
}
char* text(const char* value) { return std::strcpy(fresh<char>(std::strlen(value) + 1), value); }

void transfers() {
  char *from = filled(kBytes), *to = fresh<char>(kBytes), *path = text("written");
  evict();
  const long fd = call(SYS_open, path, long{O_RDWR | O_CREAT | O_TRUNC}, 0600L);
  tell("open", fd >= 0);
  tell("write", call(SYS_write, fd, from, static_cast<long>(kBytes)));
  evict();
  tell("pwrite", call(SYS_pwrite64, fd, from, static_cast<long>(kBytes), 0L));
  evict();
  tell("pread", call(SYS_pread64, fd, to, static_cast<long>(kBytes), 0L));
  tell("wrong", static_cast<long>(wrong(to, kBytes)));
  std::memset(to, 0, kBytes);
  evict();
  call(SYS_lseek, fd, 0L, 0L);
  tell("read", call(SYS_read, fd, to, static_cast<long>(kBytes)));
  tell("wrong", static_cast<long>(wrong(to, kBytes)));
  auto* pieces = fresh<iovec>(2);
  pieces[0] = {to, kBytes / 3};
  pieces[1] = {to + kBytes / 3, kBytes - kBytes / 3};
  std::memset(to, 0, kBytes);
  evict();
  tell("preadv", call(SYS_preadv, fd, pieces, 2L, 0L, 0L));
  tell("wrong", static_cast<long>(wrong(to, kBytes)));
  call(SYS_close, fd);
}

void structures() {
  auto *path = text("written"), *name = text("no such file");
  auto *info = fresh<struct stat>(), *at = fresh<struct stat>();
  auto* machine = fresh<utsname>();
  auto* random = fresh<char>(kBytes);
  evict();
  tell("stat", call(SYS_stat, path, info));
  std::printf("%ld\n", static_cast<long>(info->st_size));
  tell("newfstatat", call(SYS_newfstatat, long{AT_FDCWD}, path, at, 0L));
  std::printf("%d\n", at->st_ino == info->st_ino);
  tell("missing", call(SYS_access, name, 0L));
  tell("uname", call(SYS_uname, machine));
  std::puts(machine->sysname);
  tell("getrandom", call(SYS_getrandom, random, static_cast<long>(kBytes), 0L));
  size_t zeros = 0;
  for (size_t i = 0; i < kBytes; ++i) zeros += random[i] == 0;
  std::printf("random %d\n", zeros < kBytes / 64);
  auto* entries = fresh<char>(1 << 16);
  const int here = open(".", O_RDONLY | O_DIRECTORY);
  evict();
  tell("getdents64", call(SYS_getdents64, long{here}, entries, 1L << 16) > 0);
  std::printf("listed %d\n", memmem(entries, 1 << 16, "written", 8) != nullptr);
  close(here);
  tell("nowhere", call(SYS_uname, 8L));
}

void messages() {
  int* ends = fresh<int>(2);
  tell("socketpair", call(SYS_socketpair, long{AF_UNIX}, long{SOCK_SEQPACKET}, 0L, ends));
  char *from = filled(100000), *to = fresh<char>(100000);
  evict();
  tell("sendto", call(SYS_sendto, long{ends[0]}, from, 100000L, 0L, 0L, 0L));
  auto* list = holding(pollfd{ends[1], POLLIN, 0});
  evict();
  tell("poll", call(SYS_poll, list, 1L, 1000L));
  tell("recvfrom", call(SYS_recvfrom, long{ends[1]}, to, 100000L, 0L, 0L, 0L));
  tell("wrong", static_cast<long>(wrong(to, 100000)));
  const int set = epoll_create1(0);
  auto* event = holding(epoll_event{EPOLLIN, {.u64 = 77}});
  evict();
  tell("epoll_ctl", call(SYS_epoll_ctl, long{set}, long{EPOLL_CTL_ADD}, long{ends[1]}, event));
  tell("write", call(SYS_write, long{ends[0]}, from, 5L));
  auto* events = fresh<epoll_event>(100);
  evict();
  tell("epoll_wait", call(SYS_epoll_wait, long{set}, events, 100L, 1000L));
  std::printf("%ld\n", static_cast<long>(events[0].data.u64));
  auto* piece = holding(iovec{to, 100});
  auto* header = holding(msghdr{.msg_iov = piece, .msg_iovlen = 1});
  evict();
  tell("recvmsg", call(SYS_recvmsg, long{ends[1]}, header, 0L));
  std::printf("%.5s\n", to);
  for (const int fd : {ends[0], ends[1], set}) close(fd);
}

// One waits at a word that the other wakes.
void waits() {
  auto* word = fresh<std::atomic<uint32_t>>();
  auto* deadline = holding(timespec{20, 0});
  evict();
  std::thread waker([&] {
    while (call(SYS_futex, word, long{FUTEX_WAKE}, 1L) == 0) usleep(1000);
  });
  tell("futex", call(SYS_futex, word, long{FUTEX_WAIT}, 0L, deadline));
  waker.join();
  auto* short_time = holding(timespec{0, 1000});
  evict();
  tell("timed out", call(SYS_futex, word, long{FUTEX_WAIT}, 0L, short_time));
  tell("nanosleep", call(SYS_nanosleep, short_time, fresh<timespec>()));
}

int by_everyone(void (*part)()) {
  for (const Caller each : kCallers) {
    caller = each;
    evict();
    part();
  }
  return 0;
}
int transfer_all(long) { return by_everyone(&transfers); }
int structure_all(long) {
  transfers();
  return by_everyone(&structures);
}
int message_all(long) { return by_everyone(&messages); }
int wait_all(long) { return by_everyone(&waits); }

// A thread that has had nothing to do with managed memory: it gets the addresses as numbers.
long given[4], got[2];
char native[4096];
void* reads_at_once(void*) {
  got[0] = raw_call(SYS_pread64, given[0], given[1], given[2], 0, 0, 0);
  got[1] = raw_call(SYS_stat, given[3], reinterpret_cast<long>(native), 0, 0, 0, 0);
  return nullptr;
}
int thread(long) {
  transfers();
  char *to = fresh<char>(kBytes), *path = text("written");
  const int fd = open("written", O_RDONLY);
  given[0] = fd;
  given[1] = number_of(to);
  given[2] = kBytes;
  given[3] = number_of(path);
  evict();
  pthread_t started;
  pthread_create(&started, nullptr, &reads_at_once, nullptr);
  pthread_join(started, nullptr);
  tell("pread", got[0]);
  tell("wrong", static_cast<long>(wrong(to, kBytes)));
  tell("stat", got[1]);
  return 0;
}

// What is needed for faults stays unblocked, whoever blocks it, and the rest is what the program says.
int masks(long) {
  char* bytes = filled(kBytes);
  evict();
  uint64_t all = ~uint64_t{0}, *before = fresh<uint64_t>(), now = 0;
  tell("block", call(SYS_rt_sigprocmask, long{SIG_SETMASK}, &all, before, 8L));
  evict();
  tell("wrong", static_cast<long>(wrong(bytes, kBytes)));
  tell("ask", call(SYS_rt_sigprocmask, long{SIG_BLOCK}, 0L, &now, 8L));
  constexpr uint64_t kOurs = 1u << (SIGSEGV - 1) | 1u << (SIGBUS - 1) | 1u << (SIGSYS - 1) |
                             1u << (SIGKILL - 1) | 1u << (SIGSTOP - 1);
  std::printf("%d\n", (now | kOurs) == all);
  evict();
  tell("put back", call(SYS_rt_sigprocmask, long{SIG_SETMASK}, before, 0L, 8L));
  tell("ask", call(SYS_rt_sigprocmask, long{SIG_BLOCK}, 0L, &now, 8L));
  std::printf("%d\n", now == *before);
  return 0;
}

char raw_stack[1 << 16];
std::atomic<int> raw_thread_id{0};
// Of a thread that shares everything with us: nothing of libc is safe in it.
[[gnu::noinline]] long start_raw_thread() {
  constexpr long kFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
  long result;
  register auto* id __asm__("r12") = &raw_thread_id;
  auto* top = raw_stack + sizeof raw_stack - 256;
  __asm__ volatile(
      "xor %%r10d, %%r10d\n\txor %%r8d, %%r8d\n\tsyscall\n\ttest %%rax, %%rax\n\tjnz 1f\n\t"
      "movl $7, (%%r12)\n\tmov $60, %%eax\n\txor %%edi, %%edi\n\tsyscall\n\t1:"
      : "=a"(result)
      : "0"(long{SYS_clone}), "D"(kFlags), "S"(top), "d"(0L), "r"(id)
      : "rcx", "r11", "r10", "r8", "memory");
  return result;
}

int processes(long) {
  char *path = text("/bin/echo"), *word = text("executed");
  auto** arguments = fresh<char*>(3);
  arguments[0] = path;
  arguments[1] = word;
  arguments[2] = nullptr;
  auto* status = fresh<int>();
  std::fflush(stdout);
  static char native_path[] = "/bin/echo", native_word[] = "executed by a child";
  static char* native_arguments[] = {native_path, native_word, nullptr};
  const long forked = call(SYS_fork);
  if (forked == 0) {
    call(SYS_execve, &native_path[0], &native_arguments[0], environ);
    call(SYS_exit_group, 3L);
  }
  evict();
  tell("wait4", call(SYS_wait4, forked, status, 0L, 0L) == forked);
  tell("status", *status);
  const long cloned = call(SYS_clone, long{SIGCHLD}, 0L, 0L, 0L, 0L);
  if (cloned == 0) call(SYS_exit_group, 5L);
  evict();
  tell("wait4", call(SYS_wait4, cloned, status, 0L, 0L) == cloned);
  tell("status", WEXITSTATUS(*status));
  // The calls of the thread go on being seen to afterwards.
  transfers();
  std::fflush(stdout);
  evict();
  return static_cast<int>(call(SYS_execve, path, arguments, environ));
}

int vforks(long) {
  static char path[] = "/bin/true";
  static char* arguments[] = {path, nullptr};
  evict();
  long child;
  __asm__ volatile("syscall" : "=a"(child) : "0"(long{SYS_vfork}) : "rcx", "r11", "memory");
  if (child == 0) {
    raw_call(SYS_execve, reinterpret_cast<long>(path), reinterpret_cast<long>(arguments), 0, 0, 0, 0);
    raw_call(SYS_exit_group, 9, 0, 0, 0, 0, 0);
  }
  int status = 1;
  tell("waitpid", waitpid(static_cast<pid_t>(child), &status, 0) == child);
  tell("status", status);
  tell("thread", start_raw_thread() > 0);
  while (raw_thread_id != 7) usleep(1000);
  transfers();
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  constexpr Part parts[] = {{"transfers", &transfer_all}, {"structures", &structure_all},
                            {"messages", &message_all},   {"waits", &wait_all},
                            {"thread", &thread},          {"masks", &masks},
                            {"processes", &processes},    {"vforks", &vforks}};
  RUN_PARTS(parts, count, arguments);
}
