// Calls that hand structures to the kernel. What they read and write lies in managed memory that nobody has touched
// since it was evicted, or ever, so that a call which is not seen to by the library fails with EFAULT (see
// tests/endtoend/test_calls.py).
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <vector>

#include "fresh.h"
#include "parts.h"

extern char** environ;

namespace {

char* text(const char* value) { return std::strcpy(fresh<char>(std::strlen(value) + 1), value); }

int xattrs(long) {
  char *path = text("noted"), *name = text("user.colour"), *value = text("green");
  const int fd = open(path, O_RDWR | O_CREAT, 0600);
  evict();
  say("setxattr", setxattr(path, name, value, 6, 0));
  say("lsetxattr", lsetxattr(path, text("user.two"), text("2"), 2, 0));
  say("fsetxattr", fsetxattr(fd, text("user.three"), text("3"), 2, 0));
  auto* out = fresh<char>(64);
  say("getxattr", getxattr(path, name, out, 64));
  std::printf("%s\n", out);
  say("lgetxattr", lgetxattr(path, name, fresh<char>(64), 64));
  say("fgetxattr", fgetxattr(fd, name, fresh<char>(64), 64));
  say("size", getxattr(path, name, nullptr, 0));
  say("short", getxattr(path, name, fresh<char>(2), 2));
  // A filesystem may have attributes of its own, so names are looked for.
  auto* list = fresh<char>(4096);
  const ssize_t bytes = listxattr(path, list, 4096);
  say("listed", bytes > 0 && memmem(list, static_cast<size_t>(bytes), "user.two", 9) != nullptr);
  say("llistxattr", llistxattr(path, fresh<char>(4096), 4096) == bytes);
  say("flistxattr", flistxattr(fd, fresh<char>(4096), 4096) == bytes);
  say("removexattr", removexattr(path, name));
  say("lremovexattr", lremovexattr(path, text("user.two")));
  say("fremovexattr", fremovexattr(fd, text("user.three")));
  say("gone", getxattr(path, name, fresh<char>(64), 64));
  return 0;
}

int files(long) {
  char *from = text("from"), *to = text("to");
  const int fd = open(from, O_RDWR | O_CREAT, 0600);
  evict();
  say("linkat", linkat(AT_FDCWD, from, AT_FDCWD, to, 0));
  say("renameat2", renameat2(AT_FDCWD, to, AT_FDCWD, text("renamed"), RENAME_NOREPLACE));
  say("symlinkat", symlinkat(from, AT_FDCWD, text("soft")));
  auto* target = fresh<char>(64);
  say("readlink", readlink(text("soft"), target, 64));
  std::printf("%.4s\n", target);
  say("mkfifoat", mkfifoat(AT_FDCWD, text("fifo"), 0600));
  say("mknod", mknod(text("node"), S_IFIFO | 0600, 0));
  say("fchownat", fchownat(AT_FDCWD, from, static_cast<uid_t>(-1), static_cast<gid_t>(-1), 0));
  auto* times = fresh<timeval>(2);
  times[0] = times[1] = timeval{1'000'000, 0};
  evict();
  say("utimes", utimes(from, times));
  auto* info = fresh<struct stat>();
  say("stat", stat(from, info));
  std::printf("%ld\n", static_cast<long>(info->st_mtime));
  say("statvfs64", statvfs64(from, fresh<struct statvfs64>()));
  say("fstatvfs64", fstatvfs64(fd, fresh<struct statvfs64>()));
  const int directory = open(text("."), O_RDONLY | O_DIRECTORY);
  auto* entries = fresh<char>(4096);
  const ssize_t bytes = getdents64(directory, entries, 4096);
  int count = 0;
  for (ssize_t at = 0; at < bytes; at += reinterpret_cast<dirent64*>(entries + at)->d_reclen) ++count;
  say("getdents64", bytes > 0 && count >= 7);
  const int memory = memfd_create(text("named"), 0);
  say("memfd_create", memory >= 0);
  say("write", write(memory, "0123456789", 10));
  say("copy_file_range",
      copy_file_range(memory, holding<off64_t>(2), fd, holding<off64_t>(0), 4, 0) == 4 || errno == EXDEV);
  int ends[2];
  say("pipe", pipe(ends));
  say("splice", splice(memory, holding<off64_t>(1), ends[1], nullptr, 5, 0));
  return 0;
}

int locks(long) {
  const int fd = open("locked", O_RDWR | O_CREAT, 0600);
  struct flock wanted{};
  wanted.l_type = F_WRLCK;
  wanted.l_len = 100;
  auto* lock = holding(wanted);
  evict();
  say("F_SETLK", fcntl(fd, F_SETLK, lock));
  if (const pid_t child = fork(); child == 0) {
    struct flock seen = wanted;
    _exit(fcntl(fd, F_GETLK, &seen) == 0 && seen.l_type == F_WRLCK ? 0 : 1);
  } else {
    say("child", waitpid(child, fresh<int>(), 0) == child);
  }
  lock->l_type = F_RDLCK;
  evict();
  say("F_GETLK", fcntl(fd, F_GETLK, lock));
  std::printf("%d\n", lock->l_type == F_UNLCK);
  say("F_OFD_SETLK", fcntl(fd, F_OFD_GETLK, lock));
  say("F_GETFL", (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR);
  say("F_DUPFD", fcntl(fd, F_DUPFD, 100));
  return 0;
}

int requests(long) {
  evict();
  int ends[2];
  say("pipe", pipe(ends));
  say("write", write(ends[1], "hello", 5));
  auto* waiting = fresh<int>();
  say("FIONREAD", ioctl(ends[0], FIONREAD, waiting));
  std::printf("%d bytes\n", *waiting);
  auto* on = holding(1);
  evict();
  say("FIONBIO", ioctl(ends[0], FIONBIO, on));
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  auto* unlock = holding(0);
  evict();
  say("TIOCSPTLCK", ioctl(terminal, TIOCSPTLCK, unlock));
  auto* size = holding(winsize{25, 81, 0, 0});
  evict();
  say("TIOCSWINSZ", ioctl(terminal, TIOCSWINSZ, size));
  auto* seen = fresh<winsize>();
  say("TIOCGWINSZ", ioctl(terminal, TIOCGWINSZ, seen));
  std::printf("%d x %d\n", seen->ws_row, seen->ws_col);
  auto* modes = fresh<unsigned>(9);
  say("TCGETS", ioctl(terminal, TCGETS, modes));
  evict();
  say("TCSETS", ioctl(terminal, TCSETS, modes));
  std::printf("modes %x %x\n", modes[0], modes[3]);
  auto* name = text("worker");
  evict();
  say("PR_SET_NAME", prctl(PR_SET_NAME, name));
  auto* now = fresh<char>(16);
  say("PR_GET_NAME", prctl(PR_GET_NAME, now));
  std::printf("%s\n", now);
  say("pthread_setname_np", pthread_setname_np(pthread_self(), text("renamed")));
  return 0;
}

constexpr unsigned kMessages = 4;

// Messages whose list, pieces, data and address are all managed.
mmsghdr* messages(size_t bytes, bool write) {
  auto* list = fresh<mmsghdr>(kMessages);
  for (unsigned i = 0; i < kMessages; ++i) {
    auto* data = fresh<char>(bytes);
    if (write) std::memset(data, 'a' + static_cast<int>(i), bytes);
    list[i] = {};
    list[i].msg_hdr.msg_iov = holding(iovec{data, bytes});
    list[i].msg_hdr.msg_iovlen = 1;
    list[i].msg_hdr.msg_name = fresh<sockaddr_storage>();
    list[i].msg_hdr.msg_namelen = write ? 0 : sizeof(sockaddr_storage);
  }
  return list;
}

int many_messages(long) {
  evict();
  auto* ends = fresh<int>(2);
  say("socketpair", socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
  mmsghdr* out = messages(5000, true);
  evict();
  say("sendmmsg", sendmmsg(ends[0], out, kMessages, 0));
  std::printf("%u %u\n", out[0].msg_len, out[3].msg_len);
  mmsghdr* in = messages(6000, false);
  evict();
  say("recvmmsg", recvmmsg(ends[1], in, 3, 0, nullptr));
  for (int i = 0; i < 3; ++i)
    std::printf("%u %c\n", in[i].msg_len, static_cast<char*>(in[i].msg_hdr.msg_iov->iov_base)[4999]);
  say("one is left", recvmmsg(ends[1], in, kMessages, MSG_WAITFORONE, nullptr));
  say("none is left", recvmmsg(ends[1], in, kMessages, MSG_DONTWAIT, nullptr));
  say("sendmmsg", sendmmsg(ends[0], out, 1, 0));
  auto* timeout = holding(timespec{0, 1});
  say("recvmmsg", recvmmsg(ends[1], in, kMessages, 0, timeout));
  std::printf("left %ld %ld\n", timeout->tv_sec, timeout->tv_nsec);
  say("no socket", sendmmsg(0, out, 1, 0));
  return 0;
}

int times_and_limits(long) {
  evict();
  auto* spec = holding(itimerspec{{0, 0}, {1000, 0}});
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  say("timerfd_settime", timerfd_settime(timer, 0, spec, nullptr));
  auto* left = fresh<itimerspec>();
  say("timerfd_gettime", timerfd_gettime(timer, left));
  std::printf("%d\n", left->it_value.tv_sec >= 900);
  say("setitimer", setitimer(ITIMER_VIRTUAL, holding(itimerval{{0, 0}, {1000, 0}}), fresh<itimerval>()));
  say("getitimer", getitimer(ITIMER_VIRTUAL, fresh<itimerval>()));
  say("clock_getres", clock_getres(CLOCK_PROCESS_CPUTIME_ID, fresh<timespec>()));
  auto* limit = fresh<rlimit64>();
  say("getrlimit64", getrlimit64(RLIMIT_NOFILE, limit));
  evict();
  say("setrlimit64", setrlimit64(RLIMIT_NOFILE, limit));
  say("prlimit", prlimit(0, RLIMIT_CORE, nullptr, fresh<rlimit>()));
  say("times", times(fresh<tms>()) != -1);
  say("getresuid", getresuid(fresh<uid_t>(), fresh<uid_t>(), fresh<uid_t>()));
  say("getresgid", getresgid(fresh<gid_t>(), fresh<gid_t>(), fresh<gid_t>()));
  say("getgroups", getgroups(1000, fresh<gid_t>(1000)) == getgroups(0, nullptr));
  auto* scheduling = fresh<sched_param>();
  say("sched_getparam", sched_getparam(0, scheduling));
  say("sched_setscheduler", sched_setscheduler(0, SCHED_OTHER, scheduling));
  return 0;
}

int signals_and_events(long) {
  auto* set = fresh<sigset_t>();
  sigemptyset(set);
  sigaddset(set, SIGUSR1);
  say("sigprocmask", sigprocmask(SIG_BLOCK, set, nullptr));
  raise(SIGUSR1);
  evict();
  auto* pending = fresh<sigset_t>();
  say("sigpending", sigpending(pending));
  std::printf("%d\n", sigismember(pending, SIGUSR1));
  auto* told = fresh<siginfo_t>();
  say("sigwaitinfo", sigwaitinfo(set, told) == SIGUSR1);
  std::printf("%d\n", told->si_signo == SIGUSR1);
  auto* soon = holding(timespec{0, 1000});
  evict();
  say("sigtimedwait", sigtimedwait(set, told, soon));
  evict();
  const int signals = signalfd(-1, set, 0);
  say("signalfd", signals >= 0);
  raise(SIGUSR1);
  auto* read_back = fresh<signalfd_siginfo>();
  say("read", read(signals, read_back, sizeof *read_back) == sizeof *read_back);
  std::printf("%d\n", read_back->ssi_signo == SIGUSR1);
  const int event = eventfd(7, 0);
  const int queue = epoll_create1(0);
  say("epoll_ctl", epoll_ctl(queue, EPOLL_CTL_ADD, event, holding(epoll_event{EPOLLIN, {}})));
  say("epoll_pwait2", epoll_pwait2(queue, fresh<epoll_event>(4), 4, holding(timespec{1, 0}), nullptr));
  auto* value = fresh<eventfd_t>();
  say("eventfd_read", eventfd_read(event, value));
  std::printf("%lu\n", *value);
  return 0;
}

// Each way of exec in a child, which prints from a shell.
int ways_of_exec(long) {
  char *sh = text("sh"), *path = text("/bin/sh"), *option = text("-c"), *command = text("echo $0 $1 $WHERE"),
       *word = text("word");
  auto** list = fresh<char*>(6);
  char* words[] = {sh, option, command, text("name"), word, nullptr};
  std::memcpy(list, words, sizeof words);
  auto** environment = fresh<char*>(3);
  environment[0] = text("WHERE=here");
  environment[1] = text("PATH=/usr/bin:/bin");
  environment[2] = nullptr;
  const int file = open(path, O_RDONLY);
  evict();
  for (int way = 0; way < 5; ++way) {
    std::printf("%d\n", way);
    std::fflush(stdout);
    const pid_t child = vfork();
    if (child == 0) {
      if (way == 0) execvpe(sh, list, environment);
      if (way == 1) fexecve(file, list, environment);
      if (way == 2) execl(path, sh, option, command, sh, word, nullptr);
      if (way == 3) execlp(sh, sh, option, command, sh, word, nullptr);
      if (way == 4) execle(path, sh, option, command, sh, word, nullptr, environment);
      _exit(99);
    }
    auto* status = fresh<int>();
    say("wait3", wait3(status, 0, fresh<rusage>()) == child);
    std::printf("%d\n", WEXITSTATUS(*status));
  }
  return 0;
}

// Strings that are longer than a file's buffer: libc writes what it can of
// them from where they are. Those longer than the cap are never all there.
void write_strings(const char* text) {
  FILE* file = std::fopen("text", "w");
  std::printf("fputs %d\n", std::fputs(text, file) >= 0);
  evict();
  std::printf("fprintf %d\n", std::fprintf(file, "%s, %d\n", text, 7));
  evict();
  std::printf("fputs_unlocked %d\n", fputs_unlocked(text, file) >= 0);
  std::fflush(file);
  evict();
  std::printf("dprintf %d\n", dprintf(fileno(file), "%s, %s\n", text, text + 1000));
  say("fclose", std::fclose(file));
  file = std::fopen("text", "r");
  unsigned long bytes = 0, sum = 0;
  for (int c; (c = std::fgetc(file)) != EOF; ++bytes) sum = sum * 31 + static_cast<unsigned>(c);
  std::fclose(file);
  std::printf("%lu bytes, %lx\n", bytes, sum);
}
int long_strings(long) {
  for (size_t size : {100'000ul, 12'000'000ul}) {
    std::vector<char> longer(size);
    for (size_t i = 0; i + 1 < size; ++i) longer[i] = static_cast<char>('a' + i / 1000 % 26);
    evict();
    write_strings(longer.data());
  }
  std::vector<char> longer(100'000, 'x');
  longer.back() = '\0';
  evict();
  puts(longer.data());
  return 0;
}

// What libc allocates itself and hands to the kernel: its files'
// buffers, its directories', results that it makes room for.
int buffers_of_libc(long) {
  evict();
  FILE* file = std::fopen("lines", "w");
  for (int i = 0; i < 3000; ++i) std::fprintf(file, "line %d\n", i);
  say("fclose", std::fclose(file));
  file = std::fopen("lines", "r");
  char* line = nullptr;
  size_t room = 0;
  long count = 0, bytes = 0;
  for (ssize_t got = 0; (got = getline(&line, &room, file)) > 0; ++count) bytes += got;
  std::printf("%ld lines, %ld bytes, error %d\n", count, bytes, std::ferror(file));
  std::fclose(file);
  DIR* directory = opendir(".");
  for (count = 0; directory != nullptr && readdir(directory) != nullptr;) ++count;
  std::printf("%ld entries\n", count);
  char* here = getcwd(nullptr, 0);
  char* real = realpath("lines", nullptr);
  std::printf("%d %d\n", here != nullptr && here[0] == '/', real != nullptr && real[0] == '/');
  FILE* command = popen("echo from a command", "r");
  std::printf("%s", fgets(fresh<char>(100), 100, command) == nullptr ? "nothing\n" : "something\n");
  pclose(command);
  return 0;
}

constexpr Part kParts[] = {{"xattrs", xattrs},
                           {"files", files},
                           {"locks", locks},
                           {"requests", requests},
                           {"many_messages", many_messages},
                           {"times_and_limits", times_and_limits},
                           {"signals_and_events", signals_and_events},
                           {"ways_of_exec", ways_of_exec},
                           {"long_strings", long_strings},
                           {"buffers_of_libc", buffers_of_libc}};

}  // namespace

int main(int count, char** arguments) {
  char own[] = "calls.XXXXXX";  // each run begins in an empty directory
  if (mkdtemp(own) == nullptr || chdir(own) != 0) return 98;
  RUN_PARTS(kParts, count, arguments);
}
