// Forked children that go on with their parent's memory, which is larger than the cap. Every word says what it should
// be, so that each process can tell whether what it has is whole.
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "parts.h"
#include "print.h"

namespace {

constexpr size_t kWords = 3'000'000;  // 24 MB
constexpr size_t kPageWords = 512;

// Word i of version v; each page has a version of its own.
uint64_t word(size_t i, uint64_t version) { return (i * 0x9E3779B97F4A7C15u) ^ (version << 40) ^ version; }

struct Table {
  explicit Table(size_t count = kWords)
      : words(static_cast<uint64_t*>(std::malloc(count * 8))), count(count) {
    for (size_t i = 0; i < count; ++i) words[i] = word(i, 0);
  }
  size_t pages() const { return count / kPageWords; }
  uint64_t version(size_t page) const {
    const uint64_t x = words[page * kPageWords] ^ (page * kPageWords * 0x9E3779B97F4A7C15u);
    return x & 0xFFFFFF;
  }
  void set(size_t page, uint64_t version) {
    for (size_t i = page * kPageWords; i < (page + 1) * kPageWords; ++i) words[i] = word(i, version);
  }
  bool is(size_t page, uint64_t version) const {
    for (size_t i = page * kPageWords; i < (page + 1) * kPageWords; ++i)
      if (words[i] != word(i, version)) return false;
    return true;
  }
  // How many pages are not what version_of(page) says.
  template <class VersionOf>
  size_t wrong(VersionOf version_of) const {
    size_t found = 0;
    for (size_t page = 0; page < pages(); ++page) found += !is(page, version_of(page));
    return found;
  }

  uint64_t* words;
  size_t count;
};

int end_of(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// Parent and child change the same pages, and others, and each sees its own.
int both_change(long rounds) {
  const Table table;
  for (long round = 0; round < rounds; ++round) {
    const uint64_t was = static_cast<uint64_t>(round);
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      size_t wrong = table.wrong([&](size_t) { return was; });
      Table mine = table;
      for (size_t page = 0; page < table.pages(); page += 3) mine.set(page, 1000 + was);
      wrong += table.wrong([&](size_t page) { return page % 3 == 0 ? 1000 + was : was; });
      std::printf("child %ld: %zu wrong\n", round, wrong);
      std::fflush(stdout);
      _exit(wrong == 0 ? 3 : 4);
    }
    Table mine = table;
    for (size_t page = 0; page < table.pages(); ++page) mine.set(page, was + 1);
    const int end = end_of(child);
    std::printf("round %ld: child ended with %d, %zu wrong\n", round, end,
                table.wrong([&](size_t) { return was + 1; }));
  }
  return 0;
}

// Each child forks the next one, and changes a part before and after.
int generations(long depth) {
  Table table;
  for (long generation = 0; generation < depth; ++generation) {
    const auto part = static_cast<size_t>(generation);
    std::fflush(stdout);
    const pid_t child = fork();
    if (child != 0) {
      for (size_t page = 0; page < table.pages(); ++page) table.set(page, 77);
      const int end = end_of(child);
      const size_t wrong = table.wrong([](size_t) { return uint64_t{77}; });
      std::printf("generation %ld: %zu wrong, the next one ended with %d\n", generation, wrong, end);
      std::fflush(stdout);
      if (generation == 0) return wrong == 0 && end == 0 ? 0 : 1;
      _exit(wrong == 0 && end == 0 ? 0 : 1);
    }
    const auto expected = [&](size_t page) { return page % 8 < part ? page % 8 + 1 : 0; };
    const size_t wrong = table.wrong(expected);
    std::printf("generation %ld begins: %zu wrong\n", generation + 1, wrong);
    for (size_t page = part; page < table.pages(); page += 8) table.set(page, part + 1);
  }
  std::fflush(stdout);
  _exit(0);
}

// What was freed, and allocated anew, is each process's own affair.
int allocates(long) {
  Table table;
  std::vector<Table> more;
  for (int i = 0; i < 4; ++i) more.emplace_back(kWords / 4);
  std::fflush(stdout);
  const pid_t child = fork();
  for (int i = 0; i < 4; i += 2) std::free(more[static_cast<size_t>(i)].words);
  std::vector<Table> again;
  for (int i = 0; i < 3; ++i) {
    again.emplace_back(kWords / 4);
    for (size_t page = 0; page < again.back().pages(); ++page) again.back().set(page, child == 0 ? 5 : 6);
  }
  size_t wrong = table.wrong([](size_t) { return uint64_t{0}; });
  for (const Table& each : again) wrong += each.wrong([&](size_t) { return uint64_t{child == 0 ? 5u : 6u}; });
  for (size_t i : {1u, 3u}) wrong += more[i].wrong([](size_t) { return uint64_t{0}; });
  const auto* const zeros = static_cast<const uint64_t*>(std::calloc(kWords / 4, 8));
  for (size_t i = 0; i < kWords / 4; ++i) wrong += zeros[i] != 0;
  if (child == 0) {
    std::printf("child: %zu wrong\n", wrong);
    std::fflush(stdout);
    _exit(0);
  }
  const int end = end_of(child);
  std::printf("parent: %zu wrong, child ended with %d\n", wrong, end);
  return 0;
}

// Threads change pages of their own, each in turn, and fork; a child finds its forking thread's pages as they were,
// and every page of the others whole, but for the one that was being changed; or as many as FORKS_HALF_DONE says.
int storm(long rounds) {
  const char* const text = std::getenv("FORKS_HALF_DONE");
  static const size_t half_done_max = text == nullptr ? 1 : static_cast<size_t>(std::atol(text));
  constexpr size_t kThreads = 4;
  static Table table;
  static std::atomic<size_t> wrong{0};
  static std::atomic<long> ended{0};
  const auto work = [&](size_t self) {
    std::vector<uint64_t> versions(table.pages(), 0);
    uint64_t random = self * 7919 + 1;
    for (long round = 0; round < rounds; ++round) {
      for (int i = 0; i < 400; ++i) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const size_t page = (random >> 33) % (table.pages() / kThreads) * kThreads + self;
        if (!table.is(page, versions[page])) ++wrong;
        table.set(page, ++versions[page]);
      }
      const pid_t child = fork();
      if (child == 0) {
        size_t found = 0;
        size_t half_done[kThreads] = {};
        for (size_t page = 0; page < table.pages() / kThreads * kThreads; ++page) {
          const uint64_t expected = page % kThreads == self ? versions[page] : table.version(page);
          if (table.is(page, expected)) continue;
          if (page % kThreads == self || ++half_done[page % kThreads] > half_done_max) ++found;
        }
        for (size_t page = self; page < table.pages(); page += kThreads * 5) table.set(page, 99);
        for (size_t page = self; page < table.pages(); page += kThreads * 5) found += !table.is(page, 99);
        _exit(found == 0 ? 0 : 1);
      }
      if (child < 0 || end_of(child) != 0) ++wrong;
      ++ended;
    }
    for (size_t page = self; page < table.pages(); page += kThreads) wrong += !table.is(page, versions[page]);
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  std::printf("%ld children, %zu wrong\n", ended.load(), wrong.load());
  return 0;
}

// A process forks again and again; half of the time its child goes on with the work and the parent is killed or ends,
// else the child is killed at some moment. Whoever is left finds everything as it left it. `left` tells the first
// process.
int kills(long rounds) {
  int ends[2];
  if (pipe(ends) != 0) return 98;
  std::fflush(stdout);
  const pid_t first = fork();
  if (first != 0) {
    close(ends[1]);
    char text[200];
    ssize_t bytes = 0;
    for (ssize_t got; (got = read(ends[0], text + bytes, sizeof text - static_cast<size_t>(bytes))) > 0;)
      bytes += got;
    std::printf("%.*s", static_cast<int>(bytes), text);
    while (waitpid(-1, nullptr, 0) > 0) {
    }
    return 0;
  }
  close(ends[0]);
  Table table(kWords / 2);
  std::vector<uint64_t> versions(table.pages(), 0);
  uint64_t random = 12345;
  const auto change = [&](int pages) {
    size_t wrong = 0;
    for (int i = 0; i < pages; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const size_t page = (random >> 33) % table.pages();
      wrong += !table.is(page, versions[page]);
      table.set(page, ++versions[page]);
    }
    return wrong;
  };
  size_t wrong = 0;
  for (long round = 0; round < rounds; ++round) {
    wrong += change(100);
    const pid_t child = fork();
    if (child < 0) _exit(97);
    const bool is_child = child == 0;
    const bool goes_on = (round % 2 == 0) != is_child;  // by turns
    if (!goes_on && is_child) {
      change(1000000);  // until it is killed
    } else if (!goes_on) {
      change(20);
      kill(getpid(), SIGKILL);
    } else if (!is_child) {
      wrong += change(50);
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  wrong += table.wrong([&](size_t page) { return versions[page]; });
  char text[100];
  const int bytes = std::snprintf(text, sizeof text, "%ld forks, %zu wrong\n", rounds, wrong);
  if (write(ends[1], text, static_cast<size_t>(bytes)) != bytes) _exit(96);
  _exit(0);
}

// Most children execute something at once.
int executes(long rounds) {
  Table table;
  for (long round = 0; round < rounds; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      execlp("true", "true", nullptr);
      _exit(50);
    }
    for (size_t page = static_cast<size_t>(round); page < table.pages(); page += 50) table.set(page, 9);
    if (const int end = end_of(child); end != 0) std::printf("a child ended with %d\n", end);
  }
  std::printf("%zu wrong\n", table.wrong([&](size_t page) {
    return page % 50 < static_cast<size_t>(rounds) ? uint64_t{9} : uint64_t{0};
  }));
  return 0;
}

Table* g_table = nullptr;
int check_in_child(void*) {
  size_t wrong = g_table->wrong([](size_t) { return uint64_t{0}; });
  for (size_t page = 0; page < g_table->pages(); page += 2) g_table->set(page, 4);
  wrong += g_table->wrong([](size_t page) { return page % 2 == 0 ? uint64_t{4} : uint64_t{0}; });
  std::free(g_table->words);
  return wrong == 0 ? 42 : 43;
}

pid_t fork_by_instruction() {
  long result = SYS_fork;
  asm volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
  return static_cast<pid_t>(result);
}

// A child that was made without fork(): 0 _Fork, 1 SYS_fork, 2 SYS_clone, 3 clone() with a stack, 4 SYS_clone3, 5 an
// instruction of the program's.
int otherwise(long how) {
  Table table;
  g_table = &table;
  static char stack[1 << 20];
  pid_t child = -1;
  if (how == 0) child = _Fork();
  if (how == 1) child = static_cast<pid_t>(syscall(SYS_fork));
  if (how == 2) child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (how == 3) child = clone(&check_in_child, stack + sizeof stack, SIGCHLD, nullptr);
  if (how == 4) {
    clone_args arguments{};
    arguments.exit_signal = SIGCHLD;
    child = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
  }
  if (how == 5) child = fork_by_instruction();
  if (child == 0) _exit(check_in_child(nullptr));
  for (size_t page = 0; page < table.pages(); ++page) table.set(page, 8);
  const int end = end_of(child);
  std::printf("child ended with %d, %zu wrong\n", end, table.wrong([](size_t) { return uint64_t{8}; }));
  return 0;
}

// As a daemon does: closes all it may have inherited. How many there were.
int close_all_but_standard(long how) {
  constexpr int kFirst = 3, kMost = 4096;
  const int null = open("/dev/null", O_RDWR);
  int closed = 0;
  switch (how) {
    case 0:
      for (int fd = kFirst; fd < kMost; ++fd) closed += close(fd) == 0;
      break;
    case 1:
      closefrom(kFirst);
      break;
    case 2:
      closed = close_range(kFirst, ~0u, 0);
      break;
    case 3:
      for (int fd = kFirst; fd < kMost; ++fd) closed += syscall(SYS_close, fd) == 0;
      break;
    case 4:
      closed = static_cast<int>(syscall(SYS_close_range, kFirst, ~0u, 0));
      break;
    default:  // as a shell does for `exec 3</dev/null`, and so on
      for (int fd = kFirst; fd < 200; ++fd) closed += dup2(null, fd) == fd;
      for (int fd = kFirst; fd < kMost; ++fd) closed += close(fd) == 0;
  }
  return closed;
}

int closes_descriptors(long how) {
  Table table;
  std::printf("the next one is %d\n", dup(0));
  std::fflush(stdout);
  const pid_t child = fork();
  const int closed = close_all_but_standard(how);
  const uint64_t mine = child == 0 ? 5 : 6;
  size_t wrong = table.wrong([](size_t) { return uint64_t{0}; });
  for (size_t page = 0; page < table.pages(); page += 2) table.set(page, mine);
  wrong += table.wrong([&](size_t page) { return page % 2 == 0 ? mine : uint64_t{0}; });
  const int end = child == 0 ? 0 : end_of(child);
  std::printf("closed %d, the next one is %d, %zu wrong, the child ended with %d\n", closed, dup(0), wrong,
              end);
  return 0;
}

// Children that write to what is on the store beside their parent, which does too. Waits for a line before them and
// after.
int keeps_space(long rounds) {
  Table table;
  std::puts("first");
  std::fflush(stdout);
  std::getchar();
  for (long round = 0; round < rounds; ++round) {
    const pid_t child = fork();
    for (size_t page = static_cast<size_t>(round) % 3; page < table.pages(); page += 3) table.set(page, 100);
    if (child == 0) _exit(0);
    end_of(child);
  }
  for (size_t page = 0; page < table.pages(); ++page) table.set(page, 7);
  std::puts("last");
  std::fflush(stdout);
  std::getchar();
  std::printf("%zu wrong\n", table.wrong([](size_t) { return uint64_t{7}; }));
  return 0;
}

// Workers that go over all of it again and again, each with changes of its own, for so many seconds.
int workers(long seconds) {
  constexpr int kWorkers = 4;
  const Table table(8 * kWords);
  pid_t children[kWorkers];
  for (int worker = 0; worker < kWorkers; ++worker) {
    if ((children[worker] = fork()) != 0) continue;
    const uint64_t mine = static_cast<uint64_t>(worker) + 1;
    Table own = table;
    size_t wrong = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    for (uint64_t round = 0; std::chrono::steady_clock::now() < end; ++round) {
      for (size_t page = 0; page < own.pages(); page += 7) {
        wrong += !own.is(page, round == 0 ? 0 : mine);
        own.set(page, mine);
      }
    }
    _exit(wrong == 0 ? 0 : 4);
  }
  for (const pid_t child : children)
    if (const int end = end_of(child); end != 0) std::printf("a worker ended with %d\n", end);
  std::printf("%zu wrong\n", table.wrong([](size_t) { return uint64_t{0}; }));
  return 0;
}

// Children, forked one after the other so many milliseconds apart, that do nothing with what they have.
int rests(long apart_ms) {
  constexpr int kChildren = 4;
  const Table table(8 * kWords);
  pid_t children[kChildren];
  for (pid_t& child : children) {
    if ((child = fork()) == 0) {
      std::this_thread::sleep_for(std::chrono::seconds(2));
      _exit(0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(apart_ms));
  }
  for (const pid_t child : children)
    if (const int end = end_of(child); end != 0) std::printf("a child ended with %d\n", end);
  std::printf("%zu wrong\n", table.wrong([](size_t) { return uint64_t{0}; }));
  return 0;
}

const Part kParts[] = {{"both_change", both_change},
                       {"generations", generations},
                       {"allocates", allocates},
                       {"storm", storm},
                       {"kills", kills},
                       {"executes", executes},
                       {"otherwise", otherwise},
                       {"closes_descriptors", closes_descriptors},
                       {"keeps_space", keeps_space},
                       {"workers", workers},
                       {"rests", rests}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
