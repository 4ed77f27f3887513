// vmsplice(2) and process_vm_readv(2), process_vm_writev(2) on memory of which any part may be managed.
//
// vmsplice into a pipe gives it the pages themselves, which the pipe has until they are read: of managed memory it gets
// copies, as by write(2), and what is stored there afterwards does not show. From a pipe it is readv(2).
// process_vm_readv and its twin: the near side goes through bounce buffers. The far side is managed memory of this
// process only, if it is the program's own process that is named; of another process that runs Spillway the kernel
// reads what is in memory, and says EFAULT for what is not: never anything else.
// Threads: any. Errors: the calls', -1 and errno.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>

namespace spw::libc {

ssize_t splice_memory(int fd, const iovec* pieces, size_t count, unsigned flags);

struct RemotePieces {
  const iovec* local;
  size_t local_count;
  const iovec* remote;
  size_t remote_count;
};
ssize_t copy_remote(bool is_read, pid_t process, const RemotePieces& pieces, unsigned long flags);

}  // namespace spw::libc
