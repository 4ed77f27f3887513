// Calls that _FORTIFY_SOURCE has checked (compile with -O2 -D_FORTIFY_SOURCE=2), on arrays of known size in managed
// memory. Those that clang leaves alone and gcc does not are called by name.
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "parts.h"
#include "print.h"

extern "C" {
ssize_t __read_chk(int, void*, size_t, size_t);
ssize_t __pread_chk(int, void*, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void*, size_t, off_t, size_t);
ssize_t __recv_chk(int, void*, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void*, size_t, size_t, int, sockaddr*, socklen_t*);
ssize_t __readlink_chk(const char*, char*, size_t, size_t);
ssize_t __readlinkat_chk(int, const char*, char*, size_t, size_t);
char* __getcwd_chk(char*, size_t, size_t);
char* __realpath_chk(const char*, char*, size_t);
int __poll_chk(pollfd*, nfds_t, int, size_t);
int __getgroups_chk(int, gid_t*, size_t);
size_t __fread_unlocked_chk(void*, size_t, size_t, size_t, std::FILE*);
char* __fgets_chk(char*, size_t, int, std::FILE*);
}

namespace {

struct Arrays {
  char bytes[9000];
  char text[PATH_MAX];
  pollfd list[3];
  gid_t groups[70'000];
};

// Lengths that the compiler does not know.
volatile size_t g_few = 7, g_many = 8999;

uint64_t sum_of(const char* bytes, size_t count) {
  uint64_t sum = count;
  for (size_t i = 0; i < count; ++i) sum = mix(sum, static_cast<unsigned char>(bytes[i]));
  return sum;
}

int calls(long) {
  auto* a = static_cast<Arrays*>(std::calloc(1, sizeof(Arrays)));
  auto* b = static_cast<Arrays*>(std::calloc(1, sizeof(Arrays)));
  for (size_t i = 0; i < sizeof b->bytes; ++i) b->bytes[i] = static_cast<char>(i % 251);
  b->bytes[5000] = '\n';
  const int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (write(fd, b->bytes, g_many) != 8999) return 1;
  lseek(fd, 0, SEEK_SET);
  ssize_t got = __read_chk(fd, a->bytes, g_many, sizeof a->bytes);
  print_sum("read", sum_of(a->bytes, static_cast<size_t>(got)));
  got = __pread_chk(fd, a->bytes, g_many, 1000, sizeof a->bytes);
  print_sum("pread", sum_of(a->bytes, static_cast<size_t>(got)));
  got = __pread64_chk(fd, a->bytes, g_few, 20, sizeof a->bytes);
  print_sum("pread64", sum_of(a->bytes, static_cast<size_t>(got)));
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0) return 1;
  for (int i = 0; i < 2; ++i) send(pair[0], b->bytes, g_many, 0);
  got = __recv_chk(pair[1], a->bytes, g_many, sizeof a->bytes, 0);
  print_sum("recv", sum_of(a->bytes, static_cast<size_t>(got)));
  got = __recvfrom_chk(pair[1], a->bytes, g_few, sizeof a->bytes, 0, nullptr, nullptr);
  print_sum("recvfrom", sum_of(a->bytes, static_cast<size_t>(got)));
  for (pollfd& one : a->list) one = {pair[0], POLLOUT, 0};
  std::printf("poll %d, %d\n", __poll_chk(a->list, g_few - 4, 0, sizeof a->list), a->list[2].revents);
  unlink("link");
  if (symlink("data", "link") != 0) return 1;
  got = __readlink_chk("link", a->text, g_few, sizeof a->text);
  std::printf("readlink %zd %.4s\n", got, a->text);
  got = __readlinkat_chk(AT_FDCWD, "link", a->text, g_few, sizeof a->text);
  std::printf("readlinkat %zd %.4s\n", got, a->text);
  std::printf("getcwd %d\n",
              __getcwd_chk(a->text, g_few * 100, sizeof a->text) == a->text && a->text[0] == '/');
  std::printf("realpath %d\n", __realpath_chk("/usr/../usr", a->text, sizeof a->text) == a->text &&
                                   std::strcmp(a->text, "/usr") == 0);
  std::printf("getgroups %d\n", __getgroups_chk(static_cast<int>(g_many), a->groups, sizeof a->groups) >= 0);
  std::FILE* file = std::fopen("data", "r");
  print_sum("fread", sum_of(a->bytes, std::fread(a->bytes, 1, g_many - 3000, file)));
  std::rewind(file);
  print_sum("fread_unlocked",
            sum_of(a->bytes, __fread_unlocked_chk(a->bytes, sizeof a->bytes, 1, g_many, file)));
  std::rewind(file);
  std::printf("fgets %d\n",
              __fgets_chk(a->bytes, sizeof a->bytes, static_cast<int>(g_many), file) == a->bytes);
  print_sum("fgets", sum_of(a->bytes, 5002));
  std::printf(
      "fgets of a short line with too large a length %d\n",
      __fgets_chk(a->text, 4000, static_cast<int>(g_many), file) == a->text && std::strlen(a->text) == 3998);
  std::fclose(file);
  print_sum("memcpy", sum_of(static_cast<char*>(std::memcpy(a->bytes, b->bytes, g_many)), g_many));
  print_sum("memmove",
            sum_of(static_cast<char*>(std::memmove(a->bytes + 9, a->bytes, g_many - 9)), g_many - 9));
  print_sum("memset", sum_of(static_cast<char*>(std::memset(a->bytes, 'x', g_many)), g_many));
  std::printf("mempcpy %td\n", static_cast<char*>(mempcpy(a->bytes, b->bytes, g_many)) - a->bytes);
  std::memset(b->text, 'y', g_few);
  std::printf("strcpy %s\n", std::strcpy(a->text, b->text));
  std::printf("stpcpy %td\n", stpcpy(a->text, b->text) - a->text);
  std::printf("strcat %s\n", std::strcat(a->text, b->text));
  std::printf("strncat %s\n", std::strncat(a->text, b->text, g_few - 3));
  std::printf("strncpy %s\n", std::strncpy(a->text, b->text, g_few * 2));
  return 0;
}

// More than there is room for.
int overflow(long call) {
  auto* a = static_cast<Arrays*>(std::calloc(1, sizeof(Arrays)));
  auto* b = static_cast<Arrays*>(std::calloc(2, sizeof(Arrays)));
  const size_t more = g_many + sizeof(Arrays);
  std::memset(b, 'z', sizeof *b);
  switch (call) {
    case 0:
      return static_cast<int>(__read_chk(0, a->bytes, more, sizeof a->bytes));
    case 1:
      return std::memcpy(a->bytes, b, more) == nullptr;
    case 2:
      return std::memset(a->bytes, 0, more) == nullptr;
    case 3:
      return std::strcpy(a->bytes, b->bytes) == nullptr;
    case 4:
      return std::strcat(a->bytes, b->bytes) == nullptr;
    case 5:
      return std::strncpy(a->bytes, b->bytes, more) == nullptr;
    case 6:
      return __poll_chk(a->list, g_few, 0, sizeof a->list);
    case 7:
      return std::fread(a->bytes, 1, more, stdin) == 0;
    default:
      return 99;
  }
}

constexpr Part kParts[] = {{"calls", calls}, {"overflow", overflow}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
