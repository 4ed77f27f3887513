// Small files that are opened, written, closed and deleted, and what the process has open meanwhile.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "parts.h"

namespace {

constexpr size_t kSmall = 16'384, kLarge = 3u << 20;

// How many descriptors of the process are of this file, whoever opened them.
void say_descriptors(const char* when, const char* path) {
  struct stat wanted, other;
  if (stat(path, &wanted) != 0) return;
  int count = 0;
  DIR* all = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(all))
    count += fstatat(dirfd(all), entry->d_name, &other, 0) == 0 && other.st_dev == wanted.st_dev &&
             other.st_ino == wanted.st_ino;
  closedir(all);
  std::printf("%s %d\n", when, count);
}

void fill(int fd, size_t bytes, char with) {
  const std::string text(bytes, with);
  if (write(fd, text.data(), bytes) != static_cast<ssize_t>(bytes)) std::perror("write");
}

void say_contents(const char* when, int fd) {
  std::string text(kLarge, '\0');
  const ssize_t got = pread(fd, text.data(), text.size(), 0);
  unsigned long sum = 0;
  for (ssize_t i = 0; i < got; ++i) sum = sum * 31 + static_cast<unsigned char>(text[static_cast<size_t>(i)]);
  std::printf("%s %zd bytes, %lx\n", when, got, sum);
}

// The first file of a device is opened at once, which shows what its files can do.
void open_a_first_one() {
  const int fd = open("first.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
  fill(fd, kSmall, 'f');
  close(fd);
}

// `old.dat` is there, of 16 KiB.
int descriptors(long) {
  open_a_first_one();
  int fd = open("small.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
  say_descriptors("created", "small.dat");
  fill(fd, kSmall, 's');
  say_descriptors("written", "small.dat");
  close(fd);
  say_descriptors("closed", "small.dat");
  fd = open("small.dat", O_RDONLY);
  say_contents("in memory", fd);
  say_descriptors("read from memory", "small.dat");
  close(fd);
  say_descriptors("closed", "small.dat");
  fd = open("old.dat", O_RDONLY);
  say_descriptors("opened", "old.dat");
  say_contents("old", fd);
  say_descriptors("read from the disk", "old.dat");
  close(fd);
  fd = open("large.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
  fill(fd, kLarge, 'l');
  fill(fd, kSmall, 'l');
  say_descriptors("much written", "large.dat");
  close(fd);
  say_descriptors("closed", "large.dat");
  return 0;
}

// The descriptor that a file was opened by goes, and its number becomes another file's, before the file itself had to
// be opened.
int renumbered(long) {
  open_a_first_one();
  const int other = open("other.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
  fill(other, kSmall, 'x');
  close(other);
  const int fd = open("old.dat", O_RDWR), copy = dup(fd);
  close(fd);
  const int same_number = open("other.dat", O_RDWR);
  std::printf("%d\n", same_number == fd);
  say_contents("read", copy);
  close(same_number);
  const int written = open("new.dat", O_RDWR | O_CREAT | O_TRUNC, 0600), its_copy = dup(written);
  dup2(copy, written);
  fill(its_copy, kSmall, 'n');
  say_contents("written", its_copy);
  say_contents("beside it", written);
  close(written);
  close(its_copy);
  close(copy);
  return 0;
}

// Who may not open a file once more has it from the kernel.
int refused(long way) {
  open_a_first_one();
  if (geteuid() == 0 && (setgid(65'534) != 0 || setuid(65'534) != 0)) std::perror("setuid");
  if (way == 1) prctl(PR_SET_DUMPABLE, 1);  // /proc/self/fd is ours again, but not the file's mode
  const int fd = open("refused.dat", O_RDWR | O_CREAT | O_EXCL, way == 1 ? 0400 : 0600);
  std::printf("%d\n", fd >= 0);
  fill(fd, kSmall, 'r');
  std::printf("%d\n", ftruncate(fd, 1'000));
  fill(fd, kSmall, 'R');
  say_contents("refused", fd);
  std::printf("%d %d\n", fsync(fd), close(fd));
  const int again = open("refused.dat", O_RDONLY);
  say_contents("again", again);
  close(again);
  return 0;
}

// A file that was written, and may not be opened again by the time that its other blocks have to come.
int dropped(long) {
  open_a_first_one();
  const int fd = open("old.dat", O_RDWR);
  std::printf("%zd\n", pwrite(fd, std::string(4'096, 'd').data(), 4'096, 0));
  if (geteuid() == 0 && (setgid(65'534) != 0 || setuid(65'534) != 0)) std::perror("setuid");
  prctl(PR_SET_DUMPABLE, 1);
  say_contents("read", fd);
  std::printf("%zd\n", pwrite(fd, std::string(4'096, 'D').data(), 4'096, 8'000));
  std::printf("%d\n", fsync(fd));
  std::printf("%zd\n", pwrite(fd, std::string(4'096, 'e').data(), 4'096, 20'000));
  std::printf("%d\n", close(fd));
  const int again = open("old.dat", O_RDONLY);
  say_contents("again", again);
  return 0;
}

int send_to_itself(int fd) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return -1;
  char byte = 'x';
  iovec piece{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  cmsghdr* control = CMSG_FIRSTHDR(&message);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(control), &fd, sizeof fd);
  if (sendmsg(ends[0], &message, 0) != 1) std::perror("sendmsg");
  close(fd);
  int received = -1;
  if (recvmsg(ends[1], &message, 0) == 1)
    memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof received);
  close(ends[0]);
  close(ends[1]);
  return received;
}

// A file that is deleted before it is closed; who else has it is shown what was written.
int deleted(long way) {
  open_a_first_one();
  const int fd = open("deleted.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
  int go[2] = {};
  pid_t child = -1;
  if (way == 1 && pipe(go) == 0 && (child = fork()) == 0) {
    char byte;
    static char text[kLarge];  // a child reads to memory of its own
    if (read(go[0], &byte, 1) != 1) _exit(1);
    const ssize_t got = pread(fd, text, sizeof text, 0);
    _exit(got == static_cast<ssize_t>(sizeof text) && text[kLarge - 1] == 'd' ? 7 : 2);
  }
  fill(fd, kLarge, 'd');
  unlink("deleted.dat");
  say_contents("before", fd);
  if (way == 1) {
    close(fd);
    int status = 0;
    if (write(go[1], "g", 1) != 1) std::perror("write");
    waitpid(child, &status, 0);
    std::printf("child %d\n", WEXITSTATUS(status));
  } else if (way == 2) {
    const int received = send_to_itself(fd);
    say_contents("received", received);
    close(received);
  } else if (way == 3) {
    const int copy = static_cast<int>(syscall(SYS_dup, fd));
    close(fd);
    say_contents("copied", copy);
    close(copy);
  } else {
    close(fd);
  }
  return 0;
}

// Threads open, append to and close the same few files: none of them takes another one's descriptor for a stranger's.
int reopened(long) {
  constexpr int kThreads = 4, kFiles = 3, kRecords = 600;
  const auto name = [](int file) { return "shared" + std::to_string(file) + ".dat"; };
  std::vector<std::thread> all;
  for (int t = 0; t < kThreads; ++t)
    all.emplace_back([&, t] {
      const std::string record(100, static_cast<char>('a' + t));
      for (int i = 0; i < kRecords; ++i) {
        const int fd = open(name(i % kFiles).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (write(fd, record.data(), record.size()) != 100) std::perror("write");
        if (close(fd) != 0) std::perror("close");
      }
    });
  for (std::thread& thread : all) thread.join();
  long counts[256] = {};
  for (int file = 0; file < kFiles; ++file) {
    std::string text(kThreads * kRecords * 100, '\0');
    const int fd = open(name(file).c_str(), O_RDONLY);
    const ssize_t got = read(fd, text.data(), text.size());
    for (ssize_t i = 0; i < got; ++i) ++counts[static_cast<unsigned char>(text[static_cast<size_t>(i)])];
    close(fd);
  }
  std::printf("%ld %ld %ld %ld\n", counts['a'], counts['b'], counts['c'], counts['d']);
  return 0;
}

// Two descriptors of a file: as the first one was opened another process had it open, too, and as the second one was no
// more.
int beside(long) {
  open_a_first_one();
  int there[2], go[2];
  if (pipe(there) != 0 || pipe(go) != 0) return 1;
  char byte;
  const pid_t child = fork();
  if (child == 0) {
    const bool has = open("beside.dat", O_RDWR | O_CREAT, 0600) >= 0;
    _exit(has && write(there[1], "t", 1) == 1 && read(go[0], &byte, 1) == 1 ? 0 : 1);
  }
  if (read(there[0], &byte, 1) != 1) return 2;
  const int first = open("beside.dat", O_WRONLY | O_APPEND);
  if (write(go[1], "g", 1) != 1) return 3;
  waitpid(child, nullptr, 0);
  const int second = open("beside.dat", O_WRONLY | O_APPEND);
  fill(second, 100, 's');
  fill(first, 100, 'f');
  close(second);
  close(first);
  const int again = open("beside.dat", O_RDONLY);
  say_contents("beside", again);
  close(again);
  return 0;
}

// Made empty by open(), written and closed.
int replaced(long) {
  open_a_first_one();
  const int fd = open("replaced.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
  fill(fd, kSmall, 'r');
  close(fd);
  return 0;
}

constexpr Part kParts[] = {{"descriptors", descriptors}, {"renumbered", renumbered}, {"refused", refused},
                           {"dropped", dropped},         {"deleted", deleted},       {"reopened", reopened},
                           {"beside", beside},           {"replaced", replaced}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
