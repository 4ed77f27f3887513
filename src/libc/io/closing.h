// Closing descriptors and replacing them, on the program's behalf: as the functions of these names, but the runtime's
// own descriptors stay (platform/own_descriptors.h). To close one is EBADF, since the program has opened none of that
// number; to replace one is EBUSY.
// Threads: any. Async-signal-safe. errno as libc's.
#pragma once

namespace spw::libc {

int close_fd(int fd);
int close_fds(unsigned first, unsigned last, int flags);
void close_fds_from(int first);
int replace_fd(int fd, int to);
int replace_fd(int fd, int to, int flags);

}  // namespace spw::libc
