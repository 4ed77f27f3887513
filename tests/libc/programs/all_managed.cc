// A program whose every allocation is managed (SPILLWAY_QUOTA=0 SPILLWAY_THRESHOLD=1) and that uses the C and C++
// libraries and the kernel as programs do: names, structures, buffers, locks and texts are all in managed memory.
// Run: all_managed DIRECTORY. Ends with 0 when everything agreed.
#include <dirent.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "check.h"

namespace {

void names_of_files(const std::string& root) {
  std::string dir = root + "/a directory whose name is long enough for the heap";
  EXPECT(mkdir(dir.c_str(), 0755) == 0);
  OnHeap<struct stat> info;
  EXPECT(stat(dir.c_str(), info) == 0 && S_ISDIR(info->st_mode));
  std::string file = dir + "/file", other = dir + "/other", hard = dir + "/hard";
  int fd = open(file.c_str(), O_CREAT | O_RDWR, 0644);
  EXPECT(fd >= 0);
  EXPECT(fstat(fd, info) == 0 && lstat(file.c_str(), info) == 0);
  EXPECT(access(file.c_str(), R_OK) == 0 && chmod(file.c_str(), 0600) == 0 &&
         truncate(file.c_str(), 100) == 0);
  EXPECT(stat(file.c_str(), info) == 0 && info->st_size == 100 && (info->st_mode & 0777) == 0600);
  EXPECT(rename(file.c_str(), other.c_str()) == 0 && symlink(other.c_str(), file.c_str()) == 0);
  EXPECT(link(other.c_str(), hard.c_str()) == 0 && unlink(hard.c_str()) == 0);
  char* buffer = static_cast<char*>(malloc(4096));
  EXPECT(readlink(file.c_str(), buffer, 4096) == static_cast<ssize_t>(other.size()));
  EXPECT(realpath(file.c_str(), buffer) == buffer && strlen(buffer) >= other.size());
  EXPECT(getcwd(buffer, 4096) == buffer);
  auto* times = static_cast<timespec*>(calloc(2, sizeof(timespec)));
  EXPECT(futimens(fd, times) == 0 && utimensat(AT_FDCWD, other.c_str(), times, 0) == 0);
  DIR* listing = opendir(dir.c_str());
  EXPECT(listing != nullptr);
  int entries = 0;
  while (listing != nullptr && readdir(listing) != nullptr) ++entries;
  EXPECT(entries == 4);
  closedir(listing);
  std::string pattern = root + "/pattern_XXXXXX";
  int temporary = mkstemp(pattern.data());
  EXPECT(temporary >= 0 && pattern.find("XXXXXX") == std::string::npos && unlink(pattern.c_str()) == 0);
  close(temporary);
  close(fd);
}

void files(const std::string& root) {
  std::string path = root + "/a file whose name is long enough for the heap";
  FILE* file = fopen(path.c_str(), heap_text("w"));
  EXPECT(file != nullptr && fprintf(file, heap_text("name=%s %d\n"), "short", 3) > 0 && fclose(file) == 0);
  file = fopen(path.c_str(), "r");
  OnHeap<int> number;
  char* word = static_cast<char*>(malloc(200));
  EXPECT(file != nullptr && fscanf(file, "name=%199s %d", word, number.p) == 2 && *number == 3);
  fclose(file);
  std::ofstream(path) << "hello " << 42 << "\n";
  std::ifstream in(path);
  std::string text;
  int value = 0;
  EXPECT(in >> text >> value && text == "hello" && value == 42);
  EXPECT(std::filesystem::exists(path) && std::filesystem::file_size(path) == 9);
  EXPECT(std::filesystem::copy_file(path, root + "/copy") && std::filesystem::remove(root + "/copy"));
  std::vector<char> data(300000, 'd');
  std::ofstream(path).write(data.data(), static_cast<std::streamsize>(data.size()));
  std::vector<char> back(data.size());
  std::ifstream(path).read(back.data(), static_cast<std::streamsize>(back.size()));
  EXPECT(back == data);
}

void structures_of_the_kernel() {
  OnHeap<timespec> when;
  EXPECT(clock_gettime(CLOCK_MONOTONIC, when) == 0 && when->tv_sec > 0);
  *when = {0, 1000};
  EXPECT(nanosleep(when, nullptr) == 0);
  OnHeap<timeval> now;
  EXPECT(gettimeofday(now, nullptr) == 0 && now->tv_sec > 0);
  OnHeap<time_t> seconds;
  OnHeap<tm> broken_down;
  char* text = static_cast<char*>(malloc(256));
  EXPECT(time(seconds) == *seconds && localtime_r(seconds, broken_down) != nullptr);
  EXPECT(strftime(text, 256, "%Y", broken_down) == 4);
  OnHeap<rusage> usage;
  OnHeap<rlimit> limit;
  OnHeap<utsname> name;
  EXPECT(getrusage(RUSAGE_SELF, usage) == 0 && getrlimit(RLIMIT_NOFILE, limit) == 0 && limit->rlim_cur > 0);
  EXPECT(uname(name) == 0 && strcmp(name->sysname, "Linux") == 0 && gethostname(text, 256) == 0);
  OnHeap<struct sigaction> action;
  action->sa_handler = SIG_IGN;
  EXPECT(sigaction(SIGUSR1, action, nullptr) == 0);
  OnHeap<sigset_t> set;
  EXPECT(sigemptyset(set) == 0 && sigaddset(set, SIGUSR2) == 0 &&
         pthread_sigmask(SIG_BLOCK, set, nullptr) == 0);
}

void waiting_for_descriptors() {
  int* ends = static_cast<int*>(malloc(2 * sizeof(int)));
  EXPECT(pipe(ends) == 0);
  OnHeap<pollfd> watched;
  *watched = {ends[0], POLLIN, 0};
  EXPECT(poll(watched, 1, 0) == 0);
  EXPECT(write(ends[1], ends, 2 * sizeof(int)) == 8);
  EXPECT(poll(watched, 1, 0) == 1 && (watched->revents & POLLIN) != 0);
  int set = epoll_create1(0);
  OnHeap<epoll_event> event;
  event->events = EPOLLIN;
  event->data.fd = 7;
  EXPECT(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], event) == 0);
  auto* events = static_cast<epoll_event*>(calloc(1000, sizeof(epoll_event)));
  EXPECT(epoll_wait(set, events, 1000, 0) == 1 && events[0].data.fd == 7);
  OnHeap<fd_set> readable;
  OnHeap<timeval> timeout;
  FD_ZERO(readable.p);
  FD_SET(ends[0], readable.p);
  EXPECT(select(ends[0] + 1, readable, nullptr, nullptr, timeout) == 1 && FD_ISSET(ends[0], readable.p));
  close(set);
}

void sockets(const std::string& root) {
  OnHeap<sockaddr_un> address;
  address->sun_family = AF_UNIX;
  strcpy(address->sun_path, (root + "/socket").c_str());
  int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
  auto* generic = reinterpret_cast<sockaddr*>(address.p);
  EXPECT(bind(listener, generic, sizeof(sockaddr_un)) == 0 && listen(listener, 5) == 0);
  EXPECT(connect(client, generic, sizeof(sockaddr_un)) == 0);
  OnHeap<socklen_t> bytes;
  *bytes = sizeof(sockaddr_un);
  int server = accept(listener, generic, bytes);
  EXPECT(server >= 0);
  OnHeap<int> option;
  *option = 1;
  EXPECT(setsockopt(server, SOL_SOCKET, SO_KEEPALIVE, option, sizeof(int)) == 0);
  *bytes = sizeof(int);
  EXPECT(getsockopt(server, SOL_SOCKET, SO_TYPE, option, bytes) == 0 && *option == SOCK_STREAM);
  *bytes = sizeof(sockaddr_un);
  EXPECT(getsockname(server, generic, bytes) == 0 && address->sun_family == AF_UNIX);
  char* text = heap_text("hello");
  EXPECT(send(client, text, 5, 0) == 5);
  memset(text, 0, 5);
  EXPECT(recv(server, text, 5, 0) == 5 && strcmp(text, "hello") == 0);
  OnHeap<addrinfo> hints;
  hints->ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  EXPECT(getaddrinfo(heap_text("127.0.0.1"), heap_text("80"), hints, &found) == 0);
  if (found != nullptr) freeaddrinfo(found);
  for (int fd : {listener, client, server}) close(fd);
}

void locks_and_threads() {
  auto mutex = std::make_unique<std::mutex>();
  auto changed = std::make_unique<std::condition_variable>();
  auto ready = std::make_unique<bool>(false);
  auto count = std::make_unique<std::atomic<int>>(0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      std::unique_lock lock(*mutex);
      changed->wait(lock, [&] { return *ready; });
      ++*count;
    });
  usleep(20000);
  {
    std::lock_guard lock(*mutex);
    *ready = true;
  }
  changed->notify_all();
  for (auto& thread : threads) thread.join();
  EXPECT(*count == 8);
  auto sum = std::make_unique<long>(0);
  threads.clear();
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        std::lock_guard lock(*mutex);
        ++*sum;
        if (round % 100 == 0) usleep(10);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT(*sum == 8000);
  OnHeap<sem_t> semaphore;
  EXPECT(sem_init(semaphore, 0, 0) == 0);
  std::thread waiter([&] { sem_wait(semaphore); });
  EXPECT(sem_post(semaphore) == 0);
  waiter.join();
}

void texts() {
  std::map<std::string, int> ordered;
  std::unordered_map<std::string, std::string> hashed;
  for (int i = 0; i < 2000; ++i) {
    ordered["key number " + std::to_string(i)] = i;
    hashed["key number " + std::to_string(i)] = std::string(static_cast<size_t>(i % 300), 'x');
  }
  EXPECT(ordered["key number 77"] == 77 && hashed.size() == 2000 && hashed["key number 1234"].size() == 34);
  std::ostringstream out;
  for (auto& [key, value] : ordered) out << key << '=' << value << ';';
  EXPECT(out.str().size() > 10000);
  std::smatch groups;
  std::string line = "key number 12=aaa";
  EXPECT(std::regex_match(line, groups, std::regex("key ([a-z]+) (\\d+)=.*")) && groups[2] == "12");
  char* number = heap_text("12345.5abc");
  OnHeap<char*> end;
  EXPECT(strtol(number, end, 10) == 12345 && **end == '.' && strtod(number, end) == 12345.5 && **end == 'a');
  OnHeap<int> value;
  EXPECT(atoi(number) == 12345 && sscanf(number, "%d", value.p) == 1 && *value == 12345);
  char* printed = static_cast<char*>(malloc(200));
  EXPECT(snprintf(printed, 200, "%s-%d", number, 5) == 12 && strcmp(printed, "12345.5abc-5") == 0);
  OnHeap<char*> rest;
  int words = 0;
  for (char* w = strtok_r(heap_text("a b c"), " ", rest); w != nullptr; w = strtok_r(nullptr, " ", rest))
    ++words;
  EXPECT(words == 3 && strspn(number, "0123456789") == 5 && strpbrk(number, ".") == number + 5);
  std::vector<std::string> list;
  for (int i = 0; i < 5000; ++i) list.push_back(std::to_string(rand()) + std::string(20, 'q'));
  std::sort(list.begin(), list.end());
  EXPECT(std::is_sorted(list.begin(), list.end()));
  auto function = std::function<size_t(size_t)>([list](size_t i) { return list.size() + i; });
  EXPECT(function(1) == 5001);
  try {
    throw std::runtime_error(std::string(100, 'e'));
  } catch (const std::exception& error) {
    EXPECT(strlen(error.what()) == 100);
  }
}

void processes() {
  auto** arguments = static_cast<char**>(calloc(4, sizeof(char*)));
  arguments[0] = heap_text("/bin/sh");
  arguments[1] = heap_text("-c");
  arguments[2] = heap_text("exit 7");
  OnHeap<int> status;
  pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", "exit 7", nullptr);
    _exit(1);
  }
  EXPECT(waitpid(child, status, 0) == child && WEXITSTATUS(*status) == 7);
  child = vfork();  // shares memory until exec, so its arguments may be managed
  if (child == 0) {
    execv(arguments[0], arguments);
    _exit(1);
  }
  EXPECT(waitpid(child, status, 0) == child && WEXITSTATUS(*status) == 7);
  EXPECT(WEXITSTATUS(system(heap_text("exit 3"))) == 3);
  FILE* output = popen(heap_text("echo said"), "r");
  char* line = static_cast<char*>(malloc(100));
  EXPECT(output != nullptr && fgets(line, 100, output) == line && strcmp(line, "said\n") == 0);
  pclose(output);
}

}  // namespace

int main(int, char** argv) {
  auto root = std::make_unique<std::string>(std::string(argv[1]) + "/all_managed_XXXXXX");
  EXPECT(is_managed(root->data()));
  EXPECT(mkdtemp(root->data()) == root->data());
  names_of_files(*root);
  files(*root);
  structures_of_the_kernel();
  waiting_for_descriptors();
  sockets(*root);
  locks_and_threads();
  texts();
  processes();
  EXPECT(std::filesystem::remove_all(*root) > 0);
  return g_failures == 0 ? 0 : 1;
}
