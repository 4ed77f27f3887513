#include "platform/reachable.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/in_runtime.h"
#include "base/units.h"

namespace spw::platform {

namespace {

// Signals are read before it is found that nothing of the kind can be done with them.
bool may_read(uintptr_t address) {
  constexpr long kNoSuchChange = -1;
  const auto* signals = reinterpret_cast<const void*>(round_down(address, sizeof(uint64_t)));
  return ::syscall(SYS_rt_sigprocmask, kNoSuchChange, signals, nullptr, sizeof(uint64_t)) == 0 ||
         errno != EFAULT;
}

// Adding nothing to a word, as one step, is the only store that changes nothing whatever other threads do. Who sleeps
// at the word is not woken: hardly any value is less than the one it is compared with, and wakes without a reason are
// everybody's to expect.
bool may_store(uintptr_t address) {
  uint32_t nobody = 0;
  constexpr uint32_t kLeast = 0x800;  // of 12 bits
  const uint32_t add_nothing = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_LT, kLeast);
  auto* word = reinterpret_cast<uint32_t*>(round_down(address, sizeof(uint32_t)));
  return ::syscall(SYS_futex, &nobody, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0L, 0L, word, add_nothing) >= 0 ||
         errno != EFAULT;
}

}  // namespace

size_t reachable_bytes(const void* p, size_t bytes, bool is_store) {
  const auto begin = reinterpret_cast<uintptr_t>(p);
  if (bytes > UINTPTR_MAX - kMmuPageBytes - begin) return 0;
  const uintptr_t end = begin + bytes;
  const int saved_errno = errno;
  InRuntime guard;  // the calls are the kernel's as they are
  uintptr_t at = begin;
  while (at < end && (is_store ? may_store(at) : may_read(at)))
    at = round_down(at, kMmuPageBytes) + kMmuPageBytes;
  errno = saved_errno;
  return at < end ? at - begin : bytes;
}

}  // namespace spw::platform
