// Masks of a program's, plain and managed, on their way to the kernel.
#include <signal.h>

#include "fake_access.h"
#include "libc/alloc/allocate.h"
#include "libc/managed.h"
#include "libc/signals/fault_signal.h"

namespace spw::libc {
namespace {

using testing::FakeManagedSpace;

sigset_t all_signals() {
  sigset_t all;
  sigfillset(&all);
  return all;
}

TEST(Mask, no_mask_stays_none) { EXPECT_EQ(static_cast<const sigset_t*>(Mask(nullptr)), nullptr); }

TEST(Mask, what_is_kept_unblocked_may_be_unblocked_and_nothing_else) {
  const sigset_t all = all_signals();
  keep_unblocked(SIGSEGV);
  const Mask blocked(&all), unblocked(&all, SIG_UNBLOCK);
  for (const int signal : {SIGUSR1, SIGBUS, SIGTERM, SIGSEGV}) {
    EXPECT_EQ(sigismember(blocked, signal), signal == SIGSEGV ? 0 : 1) << signal;
    EXPECT_EQ(sigismember(unblocked, signal), 1) << signal;
  }
  EXPECT_EQ(sigismember(&all, SIGSEGV), 1);  // the program's own is as it was
}

TEST(Mask, a_managed_mask_is_copied) {
  FakeManagedSpace space;
  sigset_t only_term;
  sigemptyset(&only_term);
  sigaddset(&only_term, SIGTERM);
  for (const sigset_t& wanted : {only_term, all_signals()}) {
    auto* managed = static_cast<sigset_t*>(__spw_malloc_v1(1 << 20));
    ASSERT_TRUE(is_managed(managed));
    store_value(managed, wanted);
    const Mask mask(managed);
    EXPECT_FALSE(is_managed(static_cast<const sigset_t*>(mask)));
    for (const int signal : {SIGTERM, SIGUSR1})
      EXPECT_EQ(sigismember(mask, signal), sigismember(&wanted, signal)) << signal;
    release(managed);
  }
}

}  // namespace
}  // namespace spw::libc
