#include "platform/process_barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/need.h"

namespace spw::platform {

namespace {

long membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

bool enable_process_barrier() {
  const int saved = errno;
  const bool enabled = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
  errno = saved;
  return enabled;
}

void process_barrier() {
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
  // A forked child may have to register for itself.
  const bool enabled = errno == EPERM && enable_process_barrier();
  need(enabled && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0,
       "have all threads pass a memory barrier");
}

}  // namespace spw::platform
