// What a fault finds and must leave as it was: small stacks, alternate stacks, jumps, exceptions.
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "parts.h"
#include "print.h"

namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kWords = 4 << 20;  // 32 MiB
constexpr size_t kTouches = 20'000;
std::vector<uint64_t>* g_words = nullptr;

size_t kernel_frame_bytes() {
  const unsigned long told = getauxval(AT_MINSIGSTKSZ);
  return told != 0 ? told : MINSIGSTKSZ;
}

void fill() {
  g_words = new std::vector<uint64_t>(kWords);
  for (size_t i = 0; i < kWords; ++i) (*g_words)[i] = i * 0x9E3779B97F4A7C15u;
}

// Mostly of other pages. How many words are not what they were made.
long touch_some(size_t count, uint64_t seed) {
  long wrong = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = next_random(&seed) % kWords;
    wrong += (*g_words)[at] != at * 0x9E3779B97F4A7C15u;
  }
  return wrong;
}

// Native, as the library does not see it.
char* map_natively(size_t bytes) {
  return reinterpret_cast<char*>(
      syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L));
}

// ---- Stacks that are nearly full ----

struct Small {
  char* lowest;
  std::atomic<long>* wrong;
  uint64_t seed;
};

// With room for the kernel's frame, what stands before it (the red zone) and 1 KiB.
[[gnu::noinline]] long touch_with_little_left(const Small& small) {
  char* here = static_cast<char*>(__builtin_frame_address(0));
  const auto left = static_cast<size_t>(here - small.lowest);
  const size_t wanted = kernel_frame_bytes() + 128 + 1024 + 256;
  auto* used = static_cast<volatile char*>(alloca(left - wanted));
  used[0] = 1;
  return touch_some(kTouches / 8, small.seed) + (used[0] != 1);
}

int small_stacks(long) {
  fill();
  constexpr int kThreads = 8;
  // Most of it is used up by touch_with_little_left(); what is thread-local, the library's too, lies in it as well.
  constexpr size_t kThreadLocalBytes = 16 * 1024;
  const size_t least =
      static_cast<size_t>(sysconf(_SC_THREAD_STACK_MIN)) + kernel_frame_bytes() + kThreadLocalBytes;
  const size_t stack_bytes = (least + kPageBytes - 1) / kPageBytes * kPageBytes;
  std::atomic<long> wrong{0};
  static Small smalls[kThreads];
  pthread_t threads[kThreads];
  for (int t = 0; t < kThreads; ++t) {
    char* mapped = map_natively(stack_bytes + kPageBytes);
    syscall(SYS_mprotect, mapped, kPageBytes, PROT_NONE);
    smalls[t] = {mapped + kPageBytes, &wrong, static_cast<uint64_t>(t) + 1};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstack(&attributes, smalls[t].lowest, stack_bytes) != 0) return 1;
    const auto run = [](void* small) -> void* {
      const auto& its = *static_cast<const Small*>(small);
      *its.wrong += touch_with_little_left(its);
      return nullptr;
    };
    if (pthread_create(&threads[t], &attributes, run, &smalls[t]) != 0) return 1;
  }
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  std::printf("wrong %ld\n", wrong.load());
  return 0;
}

// ---- Alternate stacks ----

extern "C" char spw_test_null_access[], spw_test_after_null[], spw_test_bus_access[], spw_test_after_bus[];

[[gnu::noinline]] uint64_t access_null() {
  uint64_t marked = 0xA5A5;
  asm volatile(
      "xorl %%eax, %%eax\n\t"
      ".globl spw_test_null_access\nspw_test_null_access:\n\t"
      "movq (%%rax), %%rbx\n\t"
      ".globl spw_test_after_null\nspw_test_after_null:\n\t"
      : "+b"(marked)
      :
      : "rax", "memory");
  return marked;
}
[[gnu::noinline]] uint64_t access_bus(char* address) {
  uint64_t marked = 0xA5A5;
  asm volatile(
      ".globl spw_test_bus_access\nspw_test_bus_access:\n\t"
      "movq (%[address]), %%rbx\n\t"
      ".globl spw_test_after_bus\nspw_test_after_bus:\n\t"
      : "+b"(marked)
      : [address] "r"(address)
      : "memory");
  return marked;
}

char* g_alternate = nullptr;
size_t g_alternate_bytes = 0;
struct Met {
  int count, on_alternate, right_code, right_instruction, right_register;
  uintptr_t address;
} g_met;

// Uses no managed memory: for a second frame of the kernel's there is no room.
void skip(int number, siginfo_t* info, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const bool is_bus = number == SIGBUS;
  const int code = is_bus ? static_cast<int>(BUS_ADRERR) : static_cast<int>(SEGV_MAPERR);
  char here;
  ++g_met.count;
  g_met.on_alternate += &here >= g_alternate && &here < g_alternate + g_alternate_bytes;
  g_met.right_code += info->si_signo == number && info->si_code == code;
  g_met.right_instruction +=
      registers[REG_RIP] == reinterpret_cast<greg_t>(is_bus ? spw_test_bus_access : spw_test_null_access);
  g_met.right_register += registers[REG_RBX] == 0xA5A5;
  g_met.address = reinterpret_cast<uintptr_t>(info->si_addr);
  registers[REG_RBX] = 0x5A5A;
  registers[REG_RIP] = reinterpret_cast<greg_t>(is_bus ? spw_test_after_bus : spw_test_after_null);
}

void handle(int number, void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action{};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  sigaction(number, &action, nullptr);
}

void use_alternate_stack(size_t bytes) {
  g_alternate_bytes = bytes;
  const size_t pages_bytes = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  char* mapped = map_natively(pages_bytes + kPageBytes);
  syscall(SYS_mprotect, mapped, kPageBytes, PROT_NONE);
  g_alternate = mapped + kPageBytes;
  stack_t alternate{};
  alternate.ss_sp = g_alternate;
  alternate.ss_size = bytes;
  if (sigaltstack(&alternate, nullptr) != 0) std::perror("sigaltstack");
}

char* map_truncated_file() {
  char name[] = "shortXXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  if (file < 0 || ftruncate(file, kPageBytes) != 0) std::abort();
  return reinterpret_cast<char*>(syscall(SYS_mmap, nullptr, 2 * kPageBytes, PROT_READ, MAP_SHARED, file, 0L));
}

// `after`: the handlers are installed after the first fault, not before.
int alternate_stacks(long after) {
  char* file = map_truncated_file();
  if (after != 0) fill();
  // The kernel's handlers may be as small as this; in whole KiB, as programs reckon.
  use_alternate_stack((kernel_frame_bytes() + 2048 + 1023) / 1024 * 1024);
  for (const int number : {SIGSEGV, SIGBUS}) handle(number, skip, SA_ONSTACK);
  if (after == 0) fill();
  long wrong = 0, right = 0;
  for (uint64_t i = 0; i < 20; ++i) {
    wrong += touch_some(kTouches / 20, i + 1);
    right += access_null() == 0x5A5A && g_met.address == 0;
    wrong += touch_some(50, i + 100);
    right += access_bus(file + kPageBytes) == 0x5A5A &&
             g_met.address == reinterpret_cast<uintptr_t>(file) + kPageBytes;
  }
  std::printf("wrong %ld, right %ld of %d: on the alternate stack %d, code %d, instruction %d, register %d\n",
              wrong, right, g_met.count, g_met.on_alternate, g_met.right_code, g_met.right_instruction,
              g_met.right_register);
  return 0;
}

// ---- Signals on the alternate stack while faults are served ----

std::atomic<long> g_ticks{0}, g_ticks_wrong{0};

void tick(int, siginfo_t*, void*) {
  volatile char mine[256];
  std::memset(const_cast<char*>(mine), 3, sizeof mine);
  g_ticks_wrong += touch_some(3, static_cast<uint64_t>(++g_ticks) * 77 + 5);
  for (const volatile char& each : mine) g_ticks_wrong += each != 3;
}

void tick_every_millisecond() {
  handle(SIGALRM, tick, SA_RESTART | SA_ONSTACK);
  const itimerval often{{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &often, nullptr);
}

int alternate_timers(long) {
  fill();
  use_alternate_stack(64 << 10);
  for (const int number : {SIGSEGV, SIGBUS}) handle(number, skip, SA_ONSTACK);
  tick_every_millisecond();
  long wrong = 0, skipped = 0;
  for (uint64_t i = 0; g_ticks < 300; ++i) {
    wrong += touch_some(500, i + 1);
    skipped += access_null() != 0x5A5A;
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  std::printf("wrong %ld, in handlers %ld, not skipped %ld\n", wrong, g_ticks_wrong.load(), skipped);
  return 0;
}

// ---- Jumps and exceptions ----

sigjmp_buf g_back;
std::atomic<long> g_jump_wrong{0};

void touch_and_jump(int number, siginfo_t*, void*) {
  g_jump_wrong += touch_some(8, static_cast<uint64_t>(number) + 9);
  siglongjmp(g_back, 1);
}

int jumps(long) {
  fill();
  use_alternate_stack(64 << 10);
  handle(SIGSEGV, touch_and_jump, SA_ONSTACK);
  handle(SIGUSR1, touch_and_jump, 0);
  volatile long jumped = 0;
  long wrong = 0;
  for (int i = 0; i < 2000; ++i) {
    if (sigsetjmp(g_back, 1) == 0) {
      if (i % 2 == 0)
        access_null();
      else
        raise(SIGUSR1);
    } else {
      jumped = jumped + 1;
    }
    wrong += touch_some(10, static_cast<uint64_t>(i) + 1);
  }
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  std::printf("jumped %ld, wrong %ld, in handlers %ld, blocked %d\n", jumped, wrong, g_jump_wrong.load(),
              sigismember(&mask, SIGUSR1) + sigismember(&mask, SIGSEGV) + sigismember(&mask, SIGBUS));
  return 0;
}

struct Touching {
  uint64_t seed;
  long* wrong;
  ~Touching() { *wrong += touch_some(4, seed); }
};

[[gnu::noinline]] long throw_deep(unsigned depth, uint64_t seed, long* wrong) {
  Touching at_end{seed, wrong};
  *wrong += touch_some(2, seed * 3);
  if (depth == 0)
    throw std::runtime_error("thrown where word " + std::to_string((*g_words)[seed % kWords]) + " was read");
  return throw_deep(depth - 1, seed + 1, wrong) + 1;
}

int exceptions(long) {
  fill();
  tick_every_millisecond();
  long wrong = 0;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    try {
      throw_deep(12, i * 1000 + 1, &wrong);
    } catch (const std::exception& thrown) {
      for (const char* at = thrown.what(); *at != 0; ++at) sum = mix(sum, static_cast<uint64_t>(*at));
    }
  }
  std::printf("wrong %ld, in handlers %ld\n", wrong, g_ticks_wrong.load());
  print_sum("messages", sum);
  return 0;
}

const Part kParts[] = {
    {"small_stacks", small_stacks},
    {"alternate_stacks", alternate_stacks},
    {"alternate_timers", alternate_timers},
    {"jumps", jumps},
    {"exceptions", exceptions},
};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
