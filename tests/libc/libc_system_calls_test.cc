// System calls by number with managed arguments, in a space that the kernel cannot reach.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <set>

#include "fake_access.h"
#include "libc/alloc/allocate.h"
#include "libc/managed.h"
#include "libc/signals/fault_signal.h"
#include "libc/signals/kernel_action.h"
#include "libc/system_calls/system_calls.h"

namespace spw::libc {
namespace {

using testing::FakeManagedSpace;

struct SystemCallsTest : ::testing::Test {
  template <class T>
  T* managed(const T& value = T()) {
    auto* place = static_cast<T*>(__spw_malloc_v1(1 << 20));
    EXPECT_TRUE(is_managed(place));
    store_value(place, value);
    return place;
  }
  char* text(const char* value) {
    auto* place = static_cast<char*>(__spw_malloc_v1(1 << 20));
    copy_bytes(place, value, strlen(value) + 1);
    return place;
  }
  template <class... Arguments>
  long call(long number, Arguments... arguments) {
    CallArguments given = {(long)arguments...};
    errno = 0;
    return system_call(number, given);
  }

  FakeManagedSpace space;
};

TEST(CallRules, every_rule_names_its_call_once_and_arguments_that_it_has) {
  size_t found = 0;
  for (long number = 0; number < 600; ++number) {
    const CallRule* rule = rule_of(number);
    if (rule == nullptr) continue;
    ++found;
    EXPECT_EQ(rule->number, number);
    std::set<unsigned> seen;
    for (const ArgumentRule& each : rule->arguments) {
      if (each.kind == ArgumentRule::Kind::kNone) continue;
      EXPECT_TRUE(seen.insert(each.index).second) << number;
      EXPECT_LT(each.index, kCallArguments) << number;
      // What is replaced is no count any more.
      if (each.count != ArgumentRule::kNoCount) EXPECT_EQ(seen.count(each.count), 0u) << number;
    }
    EXPECT_FALSE(seen.empty()) << number;
  }
  EXPECT_GT(found, 100u);
  EXPECT_EQ(rule_of(-1), nullptr);
  EXPECT_EQ(rule_of(SYS_getpid), nullptr);
}

TEST_F(SystemCallsTest, names_and_structures_are_copied_both_ways) {
  struct stat natively{};
  ASSERT_EQ(stat("/proc", &natively), 0);
  auto* info = managed<struct stat>();
  EXPECT_EQ(call(SYS_stat, text("/proc"), info), 0);
  EXPECT_EQ(load_value(info).st_ino, natively.st_ino);
  EXPECT_EQ(call(SYS_stat, text("/no such file"), info), -1);
  EXPECT_EQ(errno, ENOENT);
  auto* machine = managed<utsname>();
  EXPECT_EQ(call(SYS_uname, machine), 0);
  EXPECT_STREQ(load_value(machine).sysname, "Linux");
}

TEST_F(SystemCallsTest, arrays_are_as_long_as_their_counts_say) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  struct Lists {
    pollfd polled[3];
    char behind[8];
  };
  auto* lists =
      managed(Lists{{{ends[0], POLLIN, 0}, {ends[1], POLLOUT, 0}, {ends[0], POLLOUT, 7}}, "behind"});
  EXPECT_EQ(call(SYS_poll, lists, 2, 0), 2);
  const Lists got = load_value(lists);
  EXPECT_EQ(got.polled[0].revents, POLLIN);
  EXPECT_EQ(got.polled[1].revents, POLLOUT);
  EXPECT_EQ(got.polled[2].revents, 7);
  EXPECT_STREQ(got.behind, "behind");
  fd_set wanted;
  FD_ZERO(&wanted);
  FD_SET(ends[0], &wanted);
  FD_SET(ends[1], &wanted);
  auto* in = managed(wanted);
  EXPECT_EQ(call(SYS_select, ends[1] + 1, in, 0, 0, managed(timeval{0, 0})), 1);
  const fd_set ready = load_value(in);
  EXPECT_TRUE(FD_ISSET(ends[0], &ready));
  EXPECT_FALSE(FD_ISSET(ends[1], &ready));
  for (const int fd : ends) close(fd);
}

TEST_F(SystemCallsTest, an_address_gets_as_much_as_it_has_room_for) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in wanted{};
  wanted.sin_family = AF_INET;
  wanted.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* address = managed(wanted);
  ASSERT_EQ(call(SYS_bind, fd, address, sizeof wanted), 0);
  auto* out = managed(sockaddr_in{});
  auto* bytes = managed(socklen_t{4});
  EXPECT_EQ(call(SYS_getsockname, fd, out, bytes), 0);
  EXPECT_EQ(load_value(bytes), sizeof wanted);
  EXPECT_NE(load_value(out).sin_port, 0);
  EXPECT_EQ(load_value(out).sin_addr.s_addr, 0u);
  close(fd);
}

TEST_F(SystemCallsTest, an_address_that_nobody_has_is_a_fault) {
  auto* freed = static_cast<char*>(__spw_malloc_v1(4 << 20));
  release(freed);
  EXPECT_EQ(call(SYS_uname, freed), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(call(SYS_stat, freed, 0), -1);
  EXPECT_EQ(errno, EFAULT);
}

TEST_F(SystemCallsTest, masks_leave_out_what_is_kept_unblocked) {
  keep_unblocked(SIGSYS);
  const uint64_t all = ~uint64_t{0};
  auto* wanted = managed(all);
  auto* before = managed(uint64_t{1});
  EXPECT_EQ(call(SYS_rt_sigprocmask, SIG_SETMASK, wanted, before, 8), 0);
  sigset_t now;
  sigprocmask(SIG_BLOCK, nullptr, &now);
  EXPECT_EQ(call(SYS_rt_sigprocmask, SIG_SETMASK, before, 0, 8), 0);
  EXPECT_EQ(sigismember(&now, SIGSYS), 0);
  EXPECT_EQ(sigismember(&now, SIGTERM), 1);
  EXPECT_EQ(load_value(wanted), all);
  EXPECT_EQ(without_fault_signals(all), all & ~(uint64_t{1} << (SIGSYS - 1)));
}

TEST_F(SystemCallsTest, actions_go_where_libcs_go) {
  auto* wanted = managed(KernelAction{SIG_IGN, SA_RESTART, nullptr, uint64_t{1} << (SIGTERM - 1)});
  auto* told = managed(KernelAction{});
  EXPECT_EQ(call(SYS_rt_sigaction, SIGUSR1, wanted, 0, 8), 0);
  struct sigaction by_libc{};
  sigaction(SIGUSR1, nullptr, &by_libc);
  EXPECT_EQ(by_libc.sa_handler, SIG_IGN);
  EXPECT_EQ(sigismember(&by_libc.sa_mask, SIGTERM), 1);
  EXPECT_EQ(call(SYS_rt_sigaction, SIGUSR1, 0, told, 8), 0);
  EXPECT_EQ(load_value(told).handler, SIG_IGN);
  EXPECT_EQ(load_value(told).mask, uint64_t{1} << (SIGTERM - 1));
  EXPECT_NE(load_value(told).flags & SA_RESTART, 0u);
  signal(SIGUSR1, SIG_DFL);
}

TEST_F(SystemCallsTest, managed_ranges_are_not_the_kernels_to_change) {
  auto* range = managed(uint64_t{7});
  EXPECT_EQ(call(SYS_munmap, 8 + reinterpret_cast<long>(range), 4096), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(call(462, range, 4096, 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(call(SYS_remap_file_pages, range, 4096, 0, 0, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(call(SYS_mlock, range, 4096), -1);  // the context has no pins
  EXPECT_EQ(errno, ENOMEM);
  iovec ranges{range, 4096};
  EXPECT_EQ(call(SYS_process_madvise, -1, &ranges, 1, 4, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(load_value(range), 7u);
}

TEST_F(SystemCallsTest, native_arguments_go_as_they_are) {
  utsname machine{};
  EXPECT_EQ(call(SYS_uname, &machine), 0);
  EXPECT_STREQ(machine.sysname, "Linux");
  EXPECT_EQ(call(SYS_getpid), getpid());
  EXPECT_EQ(call(SYS_uname, 8), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(call(10000), -1);
  EXPECT_EQ(errno, ENOSYS);
}

}  // namespace
}  // namespace spw::libc
