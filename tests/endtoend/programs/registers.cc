// All registers that a program can fill hold patterns when it faults:
// general, flags, x87, MXCSR, SSE and AVX, and the red zone.
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "parts.h"
#include "print.h"

namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kPages = 10'000;  // five times the cap and more
constexpr int kThreads = 3;

// What spw_test_fault() sets, and what it finds after the access. The offsets stand in its code, too.
struct alignas(64) Registers {
  std::byte state[512];     // FXSAVE's
  uint64_t vectors[16][4];  // 512: AVX's
  uint64_t general[13];     // 1024: rbx rcx rdx rbp r8..r15, rdi; rcx is what is stored, or found
  uint64_t flags;           // 1128
  uint64_t red_zone[16];    // 1136
  uint64_t has_vectors;     // 1264
};
static_assert(offsetof(Registers, vectors) == 512 && offsetof(Registers, general) == 1024 &&
              offsetof(Registers, flags) == 1128 && offsetof(Registers, red_zone) == 1136 &&
              offsetof(Registers, has_vectors) == 1264);

extern "C" void spw_test_fault(const Registers* in, Registers* out, uint64_t* address, uint64_t is_store);

asm(R"(
        .macro VECTORS move
        .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        \move \n
        .endr
        .endm
        .macro LOAD_VECTOR n
        vmovups 512+32*\n(%rdi), %ymm\n
        .endm
        .macro SAVE_VECTOR n
        vmovups %ymm\n, 512+32*\n(%rsi)
        .endm
        .macro FILL_RED_ZONE n
        movq 1136+8*\n(%rdi), %r8
        movq %r8, -8*\n-8(%rsp)
        .endm
        .macro SAVE_RED_ZONE n
        movq -8*\n-8(%rsp), %r8
        movq %r8, 1136+8*\n(%rsi)
        .endm
        .globl spw_test_fault
spw_test_fault:
        pushq %rbx
        pushq %rbp
        pushq %r12
        pushq %r13
        pushq %r14
        pushq %r15
        subq $64, %rsp
        movq %rsi, 56(%rsp)
        movq %rdx, %rax
        movq %rcx, %rsi
        fxrstor64 (%rdi)
        cmpq $0, 1264(%rdi)
        je 1f
        VECTORS LOAD_VECTOR
1:      testq %rsi, %rsi
        leaq 3f(%rip), %r9
        leaq 2f(%rip), %rsi
        cmovz %r9, %rsi
        pushq 1128(%rdi)
        popfq
        VECTORS FILL_RED_ZONE
        movq 1024(%rdi), %rbx
        movq 1032(%rdi), %rcx
        movq 1040(%rdi), %rdx
        movq 1048(%rdi), %rbp
        movq 1056(%rdi), %r8
        movq 1064(%rdi), %r9
        movq 1072(%rdi), %r10
        movq 1080(%rdi), %r11
        movq 1088(%rdi), %r12
        movq 1096(%rdi), %r13
        movq 1104(%rdi), %r14
        movq 1112(%rdi), %r15
        movq 1120(%rdi), %rdi
        jmp *%rsi
2:      movq %rcx, (%rax)
        jmp 4f
3:      movq (%rax), %rcx
4:      movq 56(%rsp), %rsi
        movq %rbx, 1024(%rsi)
        movq %rcx, 1032(%rsi)
        movq %rdx, 1040(%rsi)
        movq %rbp, 1048(%rsi)
        movq %r8, 1056(%rsi)
        movq %r9, 1064(%rsi)
        movq %r10, 1072(%rsi)
        movq %r11, 1080(%rsi)
        movq %r12, 1088(%rsi)
        movq %r13, 1096(%rsi)
        movq %r14, 1104(%rsi)
        movq %r15, 1112(%rsi)
        movq %rdi, 1120(%rsi)
        VECTORS SAVE_RED_ZONE
        pushfq
        popq 1128(%rsi)
        cld
        fxsave64 (%rsi)
        cmpq $0, 1264(%rsi)
        je 5f
        VECTORS SAVE_VECTOR
        vzeroupper
5:      emms
        pushq $0x1f80
        ldmxcsr (%rsp)
        addq $72, %rsp
        popq %r15
        popq %r14
        popq %r13
        popq %r12
        popq %rbp
        popq %rbx
        ret
)");

// Carry, parity, adjust, zero, sign, direction, overflow.
constexpr uint64_t kFlags = 0xCD5;

void make_patterns(uint64_t* seed, Registers* in) {
  auto* words = reinterpret_cast<uint64_t*>(in);
  for (size_t i = 0; i < offsetof(Registers, has_vectors) / 8; ++i) words[i] = next_random(seed);
  in->flags = 0x202 | (in->flags & kFlags);
  const uint64_t choice = next_random(seed);
  // All exceptions are masked: precision and rounding are as they come, and so is where x87's stack begins.
  const uint16_t control = static_cast<uint16_t>(0x3F | (choice & 0xF00) | 0x40);
  const uint16_t status = static_cast<uint16_t>((choice >> 16) & 0x7F00 & ~0x80);
  const uint32_t mxcsr = static_cast<uint32_t>(0x1F80 | ((choice >> 32) & 0xE07F));
  std::memset(in->state, 0, 32);
  std::memcpy(in->state, &control, 2);
  std::memcpy(in->state + 2, &status, 2);
  in->state[4] = static_cast<std::byte>(choice >> 48);
  std::memcpy(in->state + 24, &mxcsr, 4);
  for (int n = 0; in->has_vectors != 0 && n < 16; ++n)  // one register, in both
    std::memcpy(in->vectors[n], in->state + 160 + 16 * n, 16);
}

bool is_same(const Registers& in, const Registers& out) {
  bool same = std::memcmp(in.state, out.state, 5) == 0 && std::memcmp(in.state + 24, out.state + 24, 4) == 0;
  for (size_t at = 32; at < 160; at += 16) same &= std::memcmp(in.state + at, out.state + at, 10) == 0;
  same &= std::memcmp(in.state + 160, out.state + 160, 256) == 0;
  if (in.has_vectors != 0) same &= std::memcmp(in.vectors, out.vectors, sizeof in.vectors) == 0;
  for (size_t i = 0; i < 13; ++i) same &= i == 1 || in.general[i] == out.general[i];
  return same && ((in.flags ^ out.flags) & kFlags) == 0 &&
         std::memcmp(in.red_zone, out.red_zone, sizeof in.red_zone) == 0;
}

std::vector<char>* g_memory = nullptr;
std::atomic<long> g_ticks{0};

uint64_t* word_of(size_t page) { return reinterpret_cast<uint64_t*>(g_memory->data() + page * kPageBytes); }

// Changes what its thread works with, and faults itself.
void tick(int) {
  asm volatile("cld\n\tfninit\n\tfld1" ::: "memory");
  uint64_t seed = static_cast<uint64_t>(++g_ticks) * 977 + 3, sum = 0;
  for (int i = 0; i < 4; ++i) sum += word_of(next_random(&seed) % kPages)[1];
  if (sum != 0) std::abort();
}

// A thread's pages are its own. What it has stored there it finds again.
void fault_often(int thread, long faults, std::atomic<long>* wrong) {
  std::vector<uint64_t> stored(kPages / kThreads);
  Registers in{}, out{};
  in.has_vectors = out.has_vectors = static_cast<uint64_t>(__builtin_cpu_supports("avx") != 0);
  uint64_t seed = static_cast<uint64_t>(thread) + 1;
  for (long i = 0; i < faults; ++i) {
    make_patterns(&seed, &in);
    const uint64_t choice = next_random(&seed);
    const size_t own = choice % stored.size();
    const bool is_store = (choice >> 40) % 3 == 0;
    spw_test_fault(&in, &out, word_of(own * kThreads + static_cast<size_t>(thread)), is_store ? 1 : 0);
    if (!is_same(in, out)) ++*wrong;
    if (is_store) stored[own] = in.general[1];
    if (out.general[1] != (is_store ? in.general[1] : stored[own])) ++*wrong;
  }
}

int all(long faults) {
  g_memory = new std::vector<char>(kPages * kPageBytes);
  struct sigaction action{};
  action.sa_handler = tick;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  std::atomic<long> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(fault_often, t, faults / kThreads, &wrong);
  for (std::thread& thread : threads) thread.join();
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  std::printf("wrong %ld, interrupted %d\n", wrong.load(), g_ticks > 20);
  return 0;
}

const Part kParts[] = {{"all", all}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
