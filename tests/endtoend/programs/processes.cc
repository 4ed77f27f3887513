// Other processes, and signals, beside managed memory that is larger than the cap.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "parts.h"
#include "print.h"

extern char** environ;

namespace {

constexpr size_t kWords = 2'000'000;  // 16 MB

// Arguments and words all live in managed memory.
struct Work {
  std::vector<uint64_t> words = std::vector<uint64_t>(kWords);
  Work() { change(1); }
  void change(uint64_t by) {
    for (size_t i = 0; i < kWords; ++i) words[i] = words[i] * 3 + i + by;
  }
  void print() {
    uint64_t sum = 0;
    for (uint64_t word : words) sum = mix(sum, word);
    print_sum("words", sum);
    std::fflush(stdout);
  }
};

char* copy(const char* text) {
  return std::strcpy(static_cast<char*>(std::malloc(std::strlen(text) + 1)), text);
}

// {"sh", "-c", command, nullptr}, all of it managed.
char** shell(const std::string& command) {
  auto** words = static_cast<char**>(std::malloc(4 * sizeof(char*)));
  words[0] = copy("sh");
  words[1] = copy("-c");
  words[2] = copy(command.c_str());
  words[3] = nullptr;
  return words;
}

int exit_code_of(pid_t child) {
  auto* status = static_cast<int*>(std::malloc(sizeof(int)));
  if (waitpid(child, status, 0) != child) return -1;
  return WIFEXITED(*status) ? WEXITSTATUS(*status) : 1000 + WTERMSIG(*status);
}

int spawn(long) {
  Work work;
  for (int i = 0; i < 5; ++i) {
    auto* child = static_cast<pid_t*>(std::malloc(sizeof(pid_t)));
    int error = posix_spawnp(child, "sh", nullptr, nullptr, shell("echo spawned; exit " + std::to_string(i)),
                             environ);
    std::printf("error %d, code %d\n", error, exit_code_of(*child));
    std::fflush(stdout);
    work.change(static_cast<uint64_t>(i));
  }
  work.print();
  return 0;
}

int system_and_popen(long) {
  Work work;
  std::string command = "echo from system; exit 3";
  std::printf("system %d\n", WEXITSTATUS(system(command.c_str())));
  std::fflush(stdout);
  FILE* out = popen("seq 1 20000", "r");
  auto* line = static_cast<char*>(std::malloc(100));
  uint64_t sum = 0;
  while (std::fgets(line, 100, out) != nullptr) {
    sum += static_cast<uint64_t>(std::atol(line));
    work.words[sum % kWords] += sum;
  }
  std::printf("sum %llu, closed %d\n", static_cast<unsigned long long>(sum), pclose(out));
  std::fflush(stdout);
  FILE* in = popen("wc -c", "w");
  std::fwrite(work.words.data(), sizeof(uint64_t), kWords, in);
  std::printf("closed %d\n", pclose(in));
  work.print();
  return 0;
}

int vfork_and_exec(long) {
  Work work;
  char** words = shell("echo vforked; exit 4");
  for (int i = 0; i < 3; ++i) {
    pid_t child = vfork();
    if (child == 0) {
      execvp("sh", words);
      _exit(99);
    }
    std::printf("code %d\n", exit_code_of(child));
    std::fflush(stdout);
    work.change(5);
  }
  work.print();
  return 0;
}

// The grandchild becomes a program that knows nothing of its grandparent; the pipe ends when it does.
int fork_twice_and_exec(long) {
  Work work;
  int ends[2];
  if (pipe(ends) != 0) return 95;
  pid_t child = fork();
  if (child == 0) {
    if (fork() != 0) _exit(6);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execlp("sh", "sh", "-c", "echo grandchild", static_cast<char*>(nullptr));
    _exit(99);
  }
  work.change(7);
  close(ends[1]);
  std::printf("code %d\n", exit_code_of(child));
  char text[100];
  ssize_t bytes = 0;
  for (ssize_t got; (got = read(ends[0], text + bytes, sizeof text - static_cast<size_t>(bytes))) > 0;)
    bytes += got;
  std::printf("%.*s", static_cast<int>(bytes), text);
  work.print();
  return 0;
}

// What a forked child must not do: how 0 reads, 1 writes, 2 allocates and writes, 3 copies, 4 forks once more
// and reads there.
int touch_in_a_child(long how) {
  Work work;
  work.print();
  pid_t child = fork();
  if (child == 0) {
    volatile uint64_t* words = work.words.data();
    if (how == 0) _exit(static_cast<int>(words[kWords / 2]) & 1);
    if (how == 1) words[kWords / 2] = 1;
    if (how == 2) static_cast<volatile char*>(std::malloc(1 << 20))[12'345] = 1;
    if (how == 3) std::memcpy(work.words.data(), work.words.data() + kWords / 2, 100'000);
    if (how == 4) {
      pid_t grandchild = fork();
      if (grandchild == 0) _exit(static_cast<int>(words[1]) & 1);
      int status = 0;
      waitpid(grandchild, &status, 0);
      _exit(WEXITSTATUS(status));
    }
    _exit(50);
  }
  std::printf("code %d\n", exit_code_of(child));
  work.change(9);  // the parent is none the worse for it
  work.print();
  return 0;
}

// As a debugger's or a watchdog's signal would end it.
int raise_segv(long) {
  Work work;
  work.print();
  std::fflush(stdout);
  raise(SIGSEGV);
  return 50;
}

// Works until a signal ends it, at a random place.
int work_for_ever(long) {
  Work work;
  std::puts("working");
  std::fflush(stdout);
  for (;;) work.change(1);
}

volatile sig_atomic_t g_told = 0;

// Ends by itself, with a code of its own, when it is told.
int work_until_told(long) {
  signal(SIGINT, [](int) { g_told = 1; });
  Work work;
  std::puts("working");
  std::fflush(stdout);
  while (g_told == 0) work.change(1);
  std::puts("told");
  return 21;
}

const Part kParts[] = {{"spawn", spawn},
                       {"system_and_popen", system_and_popen},
                       {"vfork", vfork_and_exec},
                       {"fork_twice", fork_twice_and_exec},
                       {"touch_in_a_child", touch_in_a_child},
                       {"raise_segv", raise_segv},
                       {"work_for_ever", work_for_ever},
                       {"work_until_told", work_until_told}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
