// POSIX asynchronous I/O (aio_read and its kin) on control blocks, lists of them and buffers of which any part may be managed.
//
// libc's threads carry the transfers out with every signal blocked, so they can be given nothing that faults. What is managed they get
// as a shadow (shadow.h), in the same queue as the native requests of the program: order on a file, priorities, aio_fsync, limits and
// notification stay libc's. The result is copied back, and with it what was read, before the program can know that the request is over:
//   aio_error, aio_return                       where they find it over
//   aio_suspend, lio_listio that waits          for what is over in their list, when they return
//   aio_cancel                                  for all that is over
//   a notifying thread (SIGEV_THREAD)           for all that is over, before its function is called
//   a notifying signal (SIGEV_SIGNAL)           the same before its handler is called, and when sigwait or its kin return
// Then the control block holds what libc leaves there, and the shadow is gone. Of two who see it at once one copies and the other waits.
//
// A request that is plain costs a compare for the control block, the buffer and the attributes of its notification, and a load where
// its state is asked for, as long as there is no shadow.
// Threads: any. Errors: libc's; EAGAIN where shadow.h's limits are reached.
// Async-signal-safety: that of libc's functions. aio_error, aio_return and aio_suspend neither allocate nor free here; where they hold
// a lock or copy, they are inside of the runtime, and handlers of their thread wait (handlers.h); a handler that waits for somebody who copies
// waits for another thread.
// Differences: a notifying signal that is taken from a signalfd, or that has the default action, copies nothing by itself. A control block
// that is handed over again while it is under way is refused with EINVAL. Requests under way are neither inherited by a child nor
// touched by it.
#pragma once

#include <aio.h>

#include "front/interpose/shadow.h"

namespace spw::interpose {

int aio_transfer(aiocb* block, bool is_read);
int aio_sync(int operation, aiocb* block);
int aio_list(int mode, aiocb* const* list, int count, sigevent* event);
int aio_state(const aiocb* block);
ssize_t aio_result(aiocb* block);
int aio_wait(const aiocb* const* list, int count, const timespec* timeout);
int aio_abandon(int fd, aiocb* block);

// Whether the request is over. Then all of it is where the program looks. `shadow` is held.
bool end_if_over(Shadow& shadow);
void end_all_that_is_over();
// Somebody is about to learn that requests are over: the program will not ask for each.
inline void see_ends() {
  if (!posix_shadows.is_empty()) [[unlikely]]
    end_all_that_is_over();
}

}  // namespace spw::interpose
