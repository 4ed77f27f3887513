// Calls about signals from before sigaction() and sigprocmask(), for the signals that faults arrive as.
#include <signal.h>

#include <cstdio>
#include <vector>

#include "foreign_library.h"
#include "parts.h"
#include "print.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

// Headers declare it for older standards only.
extern "C" sighandler_t bsd_signal(int, sighandler_t) noexcept;

namespace {

constexpr size_t kWords = 3'000'000;
constexpr int kBitOfTerm = 1 << (SIGTERM - 1);

volatile sig_atomic_t g_calls = 0;
void count_call(int) { g_calls = g_calls + 1; }

std::vector<uint64_t> numbers() {
  std::vector<uint64_t> words(kWords);
  for (size_t i = 0; i < kWords; ++i) words[i] = i * 7 + 1;
  return words;
}

struct Installer {
  const char* name;
  sighandler_t (*install)(int signal, sighandler_t handler);
};
constexpr Installer kInstallers[] = {
    {"signal", [](int number, sighandler_t handler) { return signal(number, handler); }},
    {"bsd_signal", [](int number, sighandler_t handler) { return bsd_signal(number, handler); }},
    {"ssignal", [](int number, sighandler_t handler) { return ssignal(number, handler); }},
    {"sysv_signal", [](int number, sighandler_t handler) { return sysv_signal(number, handler); }},
    {"sigset", [](int number, sighandler_t handler) { return sigset(number, handler); }},
    {"sigignore", [](int number, sighandler_t) { return sigignore(number) == 0 ? SIG_IGN : SIG_ERR; }},
};

const char* name_of(sighandler_t handler) {
  if (handler == SIG_ERR) return "error";
  if (handler == SIG_DFL) return "default";
  if (handler == SIG_IGN) return "ignore";
  return handler == count_call ? "count" : "unknown";
}

// What is installed gets the signals that are sent, and no fault of managed memory.
int installed(long which) {
  const Installer& each = kInstallers[which];
  const std::vector<uint64_t> words = numbers();
  for (const int number : {SIGSEGV, SIGBUS, SIGUSR1}) {
    g_calls = 0;
    for (const sighandler_t handler : {&count_call, SIG_IGN}) {
      std::printf("%s before: %s\n", each.name, name_of(each.install(number, handler)));
      print_sum("sum", foreign_sum(words.data(), kWords));
      std::printf("calls %d\n", static_cast<int>(g_calls));
      raise(number);
      std::printf("after the signal: %d\n", static_cast<int>(g_calls));
    }
    std::printf("last: %s\n", name_of(signal(number, SIG_DFL)));
  }
  std::printf("no such signal: %s\n", name_of(each.install(1000, SIG_DFL)));
  return 0;
}

// Blocks SIGTERM and the signals of faults, and says whether SIGTERM was blocked if the call tells.
struct Blocker {
  const char* name;
  bool (*block)();
};
constexpr Blocker kBlockers[] = {
    {"sighold", [] { return sighold(SIGSEGV) + sighold(SIGBUS) + sighold(SIGTERM) != 0; }},
    {"sigset",
     [] {
       for (const int number : {SIGSEGV, SIGBUS}) sigset(number, SIG_HOLD);
       return sigset(SIGTERM, SIG_HOLD) == SIG_HOLD;
     }},
    {"sigblock", [] { return (sigblock(~0) & kBitOfTerm) != 0; }},
    {"sigsetmask", [] { return (sigsetmask(~0) & kBitOfTerm) != 0; }},
};

int blocked(long which) {
  const Blocker& each = kBlockers[which];
  const std::vector<uint64_t> words = numbers();
  signal(SIGTERM, count_call);
  for (int i = 0; i < 2; ++i) {
    std::printf("%s told %d\n", each.name, each.block());
    raise(SIGTERM);
    std::printf("calls while blocked: %d\n", static_cast<int>(g_calls));
    print_sum("sum", foreign_sum(words.data(), kWords));
    if (i == 0) sigrelse(SIGTERM);
  }
  std::printf("held: %d\n", sigset(SIGTERM, count_call) == SIG_HOLD);
  std::printf("calls: %d, blocked: %d\n", static_cast<int>(g_calls), (siggetmask() & kBitOfTerm) != 0);
  std::printf("no such signal: %d, %s\n", sighold(1000), name_of(sigset(1000, SIG_HOLD)));
  return 0;
}

constexpr Part kParts[] = {{"installed", installed}, {"blocked", blocked}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
