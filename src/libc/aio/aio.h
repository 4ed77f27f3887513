// POSIX asynchronous I/O (aio_read and its kin) on control blocks,
// lists of them and buffers of which any part may be managed.
//
// libc's threads carry the transfers out with every signal blocked, so they can be given nothing that faults. What is
// managed they get as a shadow (shadow.h), in the same queue as the native requests of the program: order on a file,
// priorities, aio_fsync, limits and notification stay libc's. Where the program may learn that requests are over, all
// that are over are ended before it does: their results are copied back, and with them what was read, since one end may
// tell of those before it, whose memory the program may then use for something else. That is:
//   aio_error, aio_return             that find one over, a plain one too
//   aio_suspend, lio_listio           when they return
//   aio_cancel                        when it returns
//   a notifying thread, or handler    before its function is called (SIGEV_THREAD, SIGEV_SIGNAL)
//   sigwait and its kin               when they return
// Then the control block holds what libc leaves there, and the shadow is out of its table. Of two who see an end at
// once one copies and the other waits.
//
// A request of more bytes than all shadows may have is carried out by aio_read or aio_write itself, where its file has
// positions, after what is queued before it.
//
// What is plain costs compares of its pointers, and a load where ends are seen, as long as there is no shadow. While
// there are some, their table is looked through.
// Threads: any. Errors: libc's; EAGAIN where the limits of shadow.h and aio_notify.h are reached, or where a
// request that is carried out by the call waits for long.
// Async-signal-safety: that of libc's functions. aio_error, aio_return and aio_suspend neither allocate nor free here,
// but for maps of their own of the kernel's; where they hold a lock or copy, they are inside of the runtime, and
// handlers of their thread wait (handlers.h); a handler that waits for somebody who copies waits for another thread. A
// thread may be cancelled in aio_suspend.
// Differences: a notifying signal that is taken from a signalfd, or that has the default action, copies nothing by
// itself. A control block that is handed over again while it is under way is refused with EINVAL. Requests under way
// are neither inherited by a child nor touched by it.
#pragma once

#include <aio.h>

#include "libc/aio/shadow.h"

namespace spw::libc {

int aio_transfer(aiocb* block, bool is_read);
int aio_sync(int operation, aiocb* block);
int aio_list(int mode, aiocb* const* list, int count, sigevent* event);
int aio_state(const aiocb* block);
ssize_t aio_result(aiocb* block);
int aio_wait(const aiocb* const* list, int count, const timespec* timeout);
int aio_abandon(int fd, aiocb* block);

// Whether the request is over. Then it has been ended, with all others that are over. `shadow` is held.
bool end_if_over(Shadow& shadow);
void end_all_that_is_over();
// Somebody is about to learn that requests are over, or has learnt it. errno is kept.
inline void see_ends() {
  if (!posix_shadows.is_empty()) [[unlikely]]
    end_all_that_is_over();
}

}  // namespace spw::libc
