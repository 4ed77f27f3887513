#include "platform/call_dispatch.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <thread>

namespace spw::platform {
namespace {

constexpr uint8_t kPasses = 0, kIsSentBack = 1;
constexpr long kAnswer = 4242;

volatile uint8_t selector = kPasses;
volatile long sent_back = 0;

void answer(int, siginfo_t* info, void* context) {
  sent_back = info->si_syscall;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RAX] = kAnswer;
}

long raw_getppid() {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "0"(long{SYS_getppid}) : "rcx", "r11", "memory");
  return result;
}

TEST(CallDispatch, code_around_an_address_is_its_objects_and_no_others) {
  auto libc = code_around(dlsym(RTLD_DEFAULT, "getppid"));
  ASSERT_TRUE(libc) << libc.status().message();
  const auto in_libc = [&](const void* p) {
    const auto address = reinterpret_cast<uintptr_t>(p);
    return address >= (*libc).begin && address < (*libc).end;
  };
  for (const char* name : {"getppid", "syscall", "pthread_create", "malloc"})
    EXPECT_TRUE(in_libc(dlsym(RTLD_NEXT, name))) << name;
  EXPECT_FALSE(in_libc(reinterpret_cast<const void*>(&raw_getppid)));
  static int data;  // of this program, as the function is
  auto own = code_around(&data);
  ASSERT_TRUE(own) << own.status().message();
  const auto address = reinterpret_cast<uintptr_t>(&raw_getppid);
  EXPECT_TRUE(address >= (*own).begin && address < (*own).end);
  EXPECT_FALSE(in_libc(&data));
  int local;
  EXPECT_EQ(code_around(&local).status().error(), ENOENT);
}

// In a thread of its own: a dispatch is a thread's, and ends with it.
TEST(CallDispatch, calls_come_back_but_for_those_of_the_range_and_while_the_selector_says_so) {
  if (!can_dispatch_calls()) GTEST_SKIP() << "the kernel has no syscall user dispatch, or does not allow it";
  struct sigaction action{}, before{};
  action.sa_sigaction = &answer;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(sigaction(SIGSYS, &action, &before), 0);
  auto libc = code_around(dlsym(RTLD_DEFAULT, "getppid"));
  ASSERT_TRUE(libc);
  const long parent = getppid();
  std::thread([&] {
    ASSERT_TRUE(dispatch_calls_of_this_thread(*libc, const_cast<const uint8_t*>(&selector)));
    EXPECT_EQ(raw_getppid(), parent);
    EXPECT_EQ(sent_back, 0);
    selector = kIsSentBack;
    const long raw = raw_getppid(), by_libc = getppid();
    std::thread([&] { EXPECT_EQ(raw_getppid(), parent); }).join();
    selector = kPasses;
    EXPECT_EQ(raw, kAnswer);
    EXPECT_EQ(sent_back, SYS_getppid);
    EXPECT_EQ(by_libc, parent);
  }).join();
  EXPECT_EQ(raw_getppid(), parent);
  sigaction(SIGSYS, &before, nullptr);
}

}  // namespace
}  // namespace spw::platform
