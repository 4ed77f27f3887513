// What a process reads and writes of a file by calls, and what it has of it in shared mappings, agree as with the
// kernel: bytes that were stored to a mapping are found by read(2), bytes that were written by write(2) are found in
// the mapping, and fsync(2) of the file includes what was stored.
//
// Before input, and before the file is synced, dirty blocks of its mappings are written. After output the same bytes
// are stored to the mappings: a block that was on its way to the file meanwhile, with what it held before, is dirty
// again then, and goes once more. Who stores to the very bytes that another thread writes by a call finds either.
// Mappings that are only read need none of this: those of a file that the process can write to are the kernel's.
//
// Threads: any; a mapping stays until bytes are stored to it (MappedFiles::visit_written_in). Not covered: what other
// processes write; a call while another thread unmaps the very bytes; calls that nobody interposes (raw ones,
// io_uring, those of stdio); what a forked child has mapped before.
// Errors: false, with EIO in errno: what was stored could not be written. errno is kept otherwise.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "libc/io/descriptors.h"
#include "libc/managed.h"
#include "libc/map/mapped_files.h"
#include "platform/uncancelled.h"

namespace spw::libc {

inline constexpr off_t kFilePosition = -1;

// Whether there is any mapping that the functions below could be about.
inline bool files_are_written_in_memory() { return mapped_files().writer() != 0; }

// Held from before_output() until after_output(): calls that write at the position of a regular file that is mapped for
// writing, or at its end, take turns, since where they wrote is asked for afterwards. A signal handler that interrupts
// one may write, too; if it leaves by siglongjmp(), nobody waits for longer than kTurnWaitNs each time.
class OutputTurn {
 public:
  static constexpr uint64_t kTurnWaitNs = 1'000'000'000;
  OutputTurn(int fd, off_t offset);

 private:
  std::optional<platform::Uncancelled> is_not_cancelled_;
  std::unique_lock<std::recursive_timed_mutex> turn_;
};

// `bytes` of the file are about to be read, from `offset` or its position on.
bool before_input(int fd, off_t offset, size_t bytes);
// The same, before they are written: what is dirty there is not on its way meanwhile, and goes through the page cache.
bool before_output(int fd, off_t offset, size_t bytes);
// The first `done` bytes of the pieces have been written at `offset`, or up to its position.
void after_output(int fd, off_t offset, const iovec* pieces, int count, size_t done);
// `done` bytes have been written there by a call that had no memory of the program's.
void after_copy(int fd, off_t offset, size_t done);
// The file is about to be synced.
bool before_sync(int fd);
// call(), which copies up to `bytes` between files; offsets: nullptr is the file's position.
template <class Call>
ssize_t copying(int from, const off_t* from_offset, int to, const off_t* to_offset, size_t bytes, Call call) {
  if (!files_are_written_in_memory()) return call();
  const auto at = [](const off_t* offset) { return offset == nullptr ? kFilePosition : load_value(offset); };
  const off_t into = at(to_offset);
  const OutputTurn turn(is_regular(from) ? to : -1, into);
  if (!before_input(from, at(from_offset), bytes) || !before_output(to, into, bytes)) return fail(EIO);
  const ssize_t done = call();
  if (done > 0) after_copy(to, into, static_cast<size_t>(done));
  return done;
}

}  // namespace spw::libc
