// read, write, recv, send and their kin on buffers of which any part may be managed.
//
// A buffer that is plain goes straight to libc. Otherwise the transfer is done in pieces through bounce buffers, with
// the results of the one call it stands for:
//   input    a piece that came short ends it; after a full piece it goes on at once for a regular file, and for anything
//            else only if more is there (poll), so that it never blocks with data in hand
//   output   goes on until all is written, or a piece came short or failed
//   an error after some bytes returns these bytes, as the kernel does
// Messages (datagram and seqpacket sockets) are never cut: one call, of up to kBounceBytesMax bytes.
// Differences from one call: a large write to a pipe or with O_APPEND
// may interleave with other writers' at multiples of kBounceBytes.
// Threads: any. Errors: libc's; ENOMEM when there is no buffer; EMSGSIZE for a message above the limit.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>

namespace spw::libc {

// Whether what is read from `fd` must not go to `buffer` by itself. Of managed memory, where the kernel cannot reach
// it; and direct reads anywhere: the device writes to the pages that were there when the call began, whatever became of
// the block meanwhile, without a fault.
bool input_needs_help(int fd, const void* buffer);

ssize_t read_fd(int fd, void* buffer, size_t bytes);
ssize_t write_fd(int fd, const void* buffer, size_t bytes);
ssize_t pread_fd(int fd, void* buffer, size_t bytes, off_t offset);
ssize_t pwrite_fd(int fd, const void* buffer, size_t bytes, off_t offset);
ssize_t readv_fd(int fd, const iovec* pieces, int count);
ssize_t writev_fd(int fd, const iovec* pieces, int count);
ssize_t preadv_fd(int fd, const iovec* pieces, int count, off_t offset);
ssize_t pwritev_fd(int fd, const iovec* pieces, int count, off_t offset);
// `flags` of a managed transfer reach every piece of it. Offset -1 is the file's own position.
ssize_t preadv2_fd(int fd, const iovec* pieces, int count, off_t offset, int flags);
ssize_t pwritev2_fd(int fd, const iovec* pieces, int count, off_t offset, int flags);
ssize_t receive(int fd, void* buffer, size_t bytes, int flags, sockaddr* from, socklen_t* from_bytes);
ssize_t send_to(int fd, const void* buffer, size_t bytes, int flags, const sockaddr* to, socklen_t to_bytes);
ssize_t receive_message(int fd, msghdr* message, int flags);
ssize_t send_message(int fd, const msghdr* message, int flags);
// Many messages: one call each where any of their memory is managed. Of the timeout only what the kernel's own call
// heeds: it is looked at after a message has arrived.
int receive_messages(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout);
int send_messages(int fd, mmsghdr* messages, unsigned count, int flags);
ssize_t random_bytes(void* buffer, size_t bytes, unsigned flags);

}  // namespace spw::libc

extern "C" ssize_t __spw_getrandom_v1(void* buffer, size_t bytes, unsigned flags);
