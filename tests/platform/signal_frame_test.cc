// Handlers of real faults, at a page without access.
#include "platform/signal_frame.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <cstring>
#include <vector>

#include "platform/handler_stacks.h"
#include "platform/memory.h"

namespace spw::platform {
namespace {

struct Observed {
  std::byte* stack = nullptr;  // the handler's own, lowest byte
  bool resumes = false;        // where it may
  bool unwinds = true;
  bool may_resume = false;
  bool ran_on_own_stack = false;
  bool alternate_is_off = false;
  int nested = 0;
  int unwound_frames = 0;
  bool met_the_fault = false;
};
Observed g_observed;
Mapping g_page;
uintptr_t g_touch_begin = 0;

std::byte* top() { return g_observed.stack + HandlerStacks::kStackBytes; }
bool is_on_own_stack(const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  return at >= g_observed.stack && at < top();
}

void close_page() { ASSERT_TRUE(protect(g_page.data(), 4096, Protection::kNone)); }

[[gnu::noinline]] int touch() { return static_cast<int>(*reinterpret_cast<volatile char*>(g_page.data())); }

_Unwind_Reason_Code look(_Unwind_Context* context, void*) {
  ++g_observed.unwound_frames;
  const auto function = reinterpret_cast<uintptr_t>(
      _Unwind_FindEnclosingFunction(reinterpret_cast<void*>(static_cast<uintptr_t>(_Unwind_GetIP(context)))));
  g_observed.met_the_fault |= function == g_touch_begin;
  return g_observed.unwound_frames < 100 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

bool open_page(void* argument) {
  const bool is_here = is_on_own_stack(__builtin_frame_address(0));
  g_observed.ran_on_own_stack = is_here;
  stack_t alternate{};
  ::syscall(SYS_sigaltstack, nullptr, &alternate);
  g_observed.alternate_is_off = (alternate.ss_flags & SS_DISABLE) != 0;
  if (g_observed.unwinds) _Unwind_Backtrace(&look, nullptr);
  // A frame at the top of the alternate stack, where there is one.
  if (argument != nullptr) raise(*static_cast<int*>(argument));
  return protect(g_page.data(), 4096, Protection::kReadWrite).is_ok();
}

int* g_raised = nullptr;

void on_fault(int, siginfo_t*, void* context) {
  const auto& frame = *static_cast<const ucontext_t*>(context);
  g_observed.may_resume = may_resume(frame);
  if (!call_on_stack(top(), &open_page, g_raised, frame)) abort();
  if (g_observed.resumes && g_observed.may_resume) resume(frame);
}

void scribble(int) {
  volatile char data[6000];
  for (volatile char& each : data) each = 0x5A;
  ++g_observed.nested;
}

void touch_in_handler(int) {
  volatile char mine[512];
  std::memset(const_cast<char*>(mine), 7, sizeof mine);
  close_page();
  touch();
  for (const volatile char& each : mine)
    if (each != 7) ++g_observed.nested;
}

void handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ASSERT_EQ(sigaction(signal, &action, nullptr), 0);
}

class SignalFrame : public ::testing::Test {
 protected:
  void SetUp() override {
    prepare_to_resume();
    auto page = map_anonymous(4096);
    ASSERT_TRUE(page);
    g_page = std::move(*page);
    g_observed = {};
    g_observed.stack = stacks_.take();
    g_raised = nullptr;
    g_touch_begin = reinterpret_cast<uintptr_t>(
        _Unwind_FindEnclosingFunction(reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(&touch) + 1)));
    catch_faults(0);
    close_page();
  }
  void TearDown() override {
    signal(SIGSEGV, SIG_DFL);
    signal(SIGUSR1, SIG_DFL);
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
    stacks_.give_back(g_observed.stack);
  }
  static void catch_faults(int flags) {
    struct sigaction action{};
    action.sa_sigaction = &on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | flags;
    ASSERT_EQ(sigaction(SIGSEGV, &action, nullptr), 0);
  }
  void use_alternate_stack(unsigned flags = 0) {
    stack_t alternate{};
    alternate.ss_sp = alternate_.data();
    alternate.ss_size = alternate_.size();
    alternate.ss_flags = static_cast<int>(flags);
    ASSERT_EQ(sigaltstack(&alternate, nullptr), 0);
    catch_faults(SA_ONSTACK);
  }

  HandlerStacks stacks_;
  std::vector<char> alternate_ = std::vector<char>(64 * 1024);
};

TEST_F(SignalFrame, the_call_runs_on_the_stack_it_is_given) {
  touch();
  EXPECT_TRUE(g_observed.ran_on_own_stack);
}

TEST_F(SignalFrame, unwinding_reaches_what_faulted) {
  touch();
  EXPECT_TRUE(g_observed.met_the_fault) << g_observed.unwound_frames << " frames";
}

TEST_F(SignalFrame, unwinding_from_an_alternate_stack_reaches_what_faulted) {
  use_alternate_stack();
  touch();
  EXPECT_TRUE(g_observed.ran_on_own_stack && g_observed.met_the_fault)
      << g_observed.unwound_frames << " frames";
}

TEST_F(SignalFrame, a_handler_that_meets_the_call_may_overwrite_the_alternate_stack) {
  int signal = SIGUSR1;
  g_raised = &signal;
  use_alternate_stack();
  handle(SIGUSR1, &scribble, SA_ONSTACK);
  for (const bool resumes : {false, true}) {
    g_observed.resumes = resumes;
    close_page();
    EXPECT_EQ(touch(), 0);
  }
  EXPECT_EQ(g_observed.nested, 2);
  EXPECT_TRUE(g_observed.ran_on_own_stack);
}

TEST_F(SignalFrame, a_handler_on_the_alternate_stack_keeps_its_data_and_gets_it_back) {
  use_alternate_stack();
  handle(SIGUSR1, &touch_in_handler, SA_ONSTACK);
  raise(SIGUSR1);
  EXPECT_EQ(g_observed.nested, 0);
  EXPECT_TRUE(g_observed.ran_on_own_stack && g_observed.alternate_is_off);
  stack_t after{};
  ASSERT_EQ(sigaltstack(nullptr, &after), 0);
  EXPECT_EQ(after.ss_sp, alternate_.data());
  EXPECT_EQ(after.ss_flags, 0);
  sigset_t mask;
  ASSERT_EQ(sigprocmask(SIG_SETMASK, nullptr, &mask), 0);
  EXPECT_EQ(sigismember(&mask, SIGTERM), 0);
}

// A register file of patterns before the fault, and what was there after it.
struct Registers {
  uint64_t general[12];
  uint64_t flags;
  alignas(64) std::byte state[512];
};

[[gnu::noinline]] void fault_with(const Registers& in, Registers* out) {
  void* address = g_page.data();
  asm volatile(
      "fxrstor64 %c[state](%%rdi)\n\t"
      "pushq %%rbp\n\t"
      "pushq %%rsi\n\t"
      "pushq %c[flags](%%rdi)\n\t"
      "popfq\n\t"
      "movq 0(%%rdi), %%rbx\n\t"
      "movq 8(%%rdi), %%rcx\n\t"
      "movq 16(%%rdi), %%rdx\n\t"
      "movq 24(%%rdi), %%rbp\n\t"
      "movq 32(%%rdi), %%r8\n\t"
      "movq 40(%%rdi), %%r9\n\t"
      "movq 48(%%rdi), %%r10\n\t"
      "movq 56(%%rdi), %%r11\n\t"
      "movq 64(%%rdi), %%r12\n\t"
      "movq 72(%%rdi), %%r13\n\t"
      "movq 80(%%rdi), %%r14\n\t"
      "movq 88(%%rdi), %%r15\n\t"
      "movb (%%rax), %%al\n\t"
      "xchgq (%%rsp), %%rsi\n\t"
      "movq %%rbx, 0(%%rsi)\n\t"
      "movq %%rcx, 8(%%rsi)\n\t"
      "movq %%rdx, 16(%%rsi)\n\t"
      "movq %%rbp, 24(%%rsi)\n\t"
      "movq %%r8, 32(%%rsi)\n\t"
      "movq %%r9, 40(%%rsi)\n\t"
      "movq %%r10, 48(%%rsi)\n\t"
      "movq %%r11, 56(%%rsi)\n\t"
      "movq %%r12, 64(%%rsi)\n\t"
      "movq %%r13, 72(%%rsi)\n\t"
      "movq %%r14, 80(%%rsi)\n\t"
      "movq %%r15, 88(%%rsi)\n\t"
      "pushfq\n\t"
      "popq %c[flags](%%rsi)\n\t"
      "fxsave64 %c[state](%%rsi)\n\t"
      "popq %%rsi\n\t"
      "popq %%rbp\n\t"
      "cld\n\t"
      "emms\n\t"
      : "+a"(address)
      : "D"(&in), "S"(out), [flags] "i"(offsetof(Registers, flags)), [state] "i"(offsetof(Registers, state))
      : "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0",
        "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
        "xmm13", "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)");
}

TEST_F(SignalFrame, registers_are_what_they_were_however_the_handler_ends) {
  g_observed.unwinds = false;                 // the frame pointer is a pattern, too
  constexpr uint64_t kFlags = 0x8D7 | 0x400;  // all that arithmetic sets, and the direction
  for (const bool resumes : {false, true}) {
    g_observed.resumes = resumes;
    for (int round = 0; round < 50; ++round) {
      Registers in{}, out{};
      std::memset(in.general, 0x11 + round, sizeof in.general);
      in.flags = (0x202 | kFlags) ^ (round % 2 != 0 ? 0x8D5 : 0);
      asm volatile("fxsave64 %0" : "=m"(in.state));
      for (size_t at = 32; at < 416; ++at)
        in.state[at] = static_cast<std::byte>(at * 7 + static_cast<size_t>(round));
      in.state[24] = std::byte{0xA0};  // MXCSR: the sticky flags, and all exceptions masked but none
      in.state[25] = std::byte{0x7F};
      in.state[4] = std::byte{0xFF};  // all of x87's registers hold something
      close_page();
      fault_with(in, &out);
      EXPECT_EQ(std::memcmp(in.general, out.general, sizeof in.general), 0);
      EXPECT_EQ(out.flags & kFlags, in.flags & kFlags);
      EXPECT_EQ(std::memcmp(in.state, out.state, 5), 0);
      EXPECT_EQ(std::memcmp(in.state + 24, out.state + 24, 4), 0);
      for (size_t at = 32; at < 160; at += 16)
        EXPECT_EQ(std::memcmp(in.state + at, out.state + at, 10), 0) << at;
      EXPECT_EQ(std::memcmp(in.state + 160, out.state + 160, 256), 0);
    }
  }
  EXPECT_TRUE(g_observed.ran_on_own_stack);
}

TEST_F(SignalFrame, the_usual_fault_is_left_without_the_kernel) {
  touch();
  if (!g_observed.may_resume)
    GTEST_SKIP() << "the kernel saves no extended state, or there is a shadow stack";
  g_observed.resumes = true;
  close_page();
  EXPECT_EQ(touch(), 0);
}

TEST_F(SignalFrame, single_steps_and_stacks_that_disarm_themselves_are_left_to_the_kernel) {
  constexpr unsigned kAutoDisarm = 1u << 31;
  g_observed.resumes = true;
  use_alternate_stack(kAutoDisarm);
  touch();
  EXPECT_FALSE(g_observed.may_resume);
  stack_t after{};
  ASSERT_EQ(sigaltstack(nullptr, &after), 0);
  EXPECT_EQ(after.ss_sp, alternate_.data());

  handle(SIGTRAP, [](int) { ++g_observed.nested; }, 0);
  catch_faults(0);
  close_page();
  constexpr uint64_t kTrapFlag = 0x100;
  asm volatile(
      "subq $128, %%rsp\n\t"
      "pushfq\n\t"
      "orq %1, (%%rsp)\n\t"
      "popfq\n\t"
      "movb (%0), %%al\n\t"
      "pushfq\n\t"
      "andq $~0x100, (%%rsp)\n\t"
      "popfq\n\t"
      "addq $128, %%rsp\n\t"
      :
      : "r"(g_page.data()), "i"(kTrapFlag)
      : "rax", "memory", "cc");
  EXPECT_FALSE(g_observed.may_resume);
  EXPECT_GE(g_observed.nested, 3);
}

TEST_F(SignalFrame, segments_of_another_kind_and_states_without_extension_are_left_to_the_kernel) {
  static ucontext_t seen;
  static _libc_fpstate state;
  struct sigaction action{};
  action.sa_sigaction = [](int, siginfo_t*, void* context) {
    seen = *static_cast<ucontext_t*>(context);
    g_observed.may_resume = may_resume(seen);
    ucontext_t other = seen;
    other.uc_mcontext.gregs[REG_CSGSFS] ^= 0x10;
    g_observed.nested += may_resume(other);
    other = seen;
    other.uc_flags &= ~1ul;
    g_observed.nested += may_resume(other);
    other = seen;
    std::memcpy(&state, seen.uc_mcontext.fpregs, sizeof state);
    std::memset(reinterpret_cast<char*>(&state) + 464, 0, 48);
    other.uc_mcontext.fpregs = &state;
    g_observed.nested += may_resume(other);
    ASSERT_TRUE(protect(g_page.data(), 4096, Protection::kReadWrite));
  };
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(sigaction(SIGSEGV, &action, nullptr), 0);
  touch();
  EXPECT_EQ(g_observed.nested, 0);
}

}  // namespace
}  // namespace spw::platform
