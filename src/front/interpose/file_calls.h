// Buffered descriptors, as the interposed functions see them. runtime/ implements this over front/file.
//
// Once use_file_calls() has been called, real() has functions that ask here first (buffered.cc), so that every
// interposed function does, whatever it does about managed memory. The runtime's own calls (InRuntime) go to libc.
// Results: as the function's, or a negative errno, or kNotBuffered: the descriptor is the kernel's.
// Threads: any. Lifetime: the process.
#pragma once

#include <sys/mman.h>
#include <sys/uio.h>

#include <cstdint>
#include <span>

namespace spw::interpose {

inline constexpr int64_t kNotBuffered = INT64_MIN;
inline constexpr int64_t kOwnPlace = -1;

class FileCalls {
 public:
  virtual ~FileCalls() = default;
  // `fd` has just been opened: it is buffered from now on if it is one of the files to be. True: it is.
  virtual bool opened(int fd, int flags) = 0;
  virtual bool is_buffered(int fd) = 0;
  // It is one of the files to be buffered, or is buffered.
  virtual bool is_wanted(int fd) = 0;
  // `offset`: kOwnPlace is that of the open file.
  virtual int64_t read(int fd, std::span<const iovec> to, int64_t offset) = 0;
  virtual int64_t write(int fd, std::span<const iovec> from, int64_t offset) = 0;
  virtual int64_t seek(int fd, int64_t offset, int whence) = 0;
  virtual int64_t resize(int fd, int64_t bytes) = 0;
  virtual int64_t extend(int fd, int64_t bytes) = 0;  // resize(), if that makes it longer
  virtual int64_t sync(int fd, bool whole) = 0;
  // What was written has reached the kernel's file, for a call that asks the kernel about it.
  virtual int64_t flush(int fd) = 0;
  virtual int64_t size(int fd) = 0;
  // Of the file with this number, if it is buffered.
  virtual int64_t size_of(uint64_t device, uint64_t inode) = 0;
  virtual int64_t resize_file(uint64_t device, uint64_t inode, int64_t bytes) = 0;
  // The descriptor is about to be closed; all of [first, last] are.
  virtual int64_t close(int fd) = 0;
  virtual void close_range(int first, int last) = 0;
  virtual void flags_changed(int fd, int flags) = 0;
  // The file of this descriptor is the kernel's from now on, with all its descriptors: for what only the kernel can do.
  virtual void give_back(int fd) = 0;
  // `to` has just become a duplicate of `from`.
  virtual void duplicated(int from, int to) = 0;
  // All files reach the kernel, and its descriptors stand where ours do: this process is about to be another program's,
  // to have a child, or to end at once.
  virtual void settle() = 0;
};

// Once. Never taken back, but in a forked child, whose descriptors are the kernel's.
void use_file_calls(FileCalls* calls);
// nullptr: none, or this thread is in the runtime.
FileCalls* file_calls();
// The same for calls that change which descriptors there are: nullptr also
// in a child of vfork(), which has descriptors of its own but our memory.
FileCalls* descriptor_calls();
// Before a mapping. What is mapped of a file and what is read and written are the same bytes, which the kernel sees to:
// true, and the mapping is to be its own, for a file that is buffered or could be.
inline bool is_the_kernels_to_map(int flags, int fd) {
  FileCalls* calls = (flags & MAP_ANONYMOUS) != 0 ? nullptr : descriptor_calls();
  if (calls == nullptr || !calls->is_wanted(fd)) return false;
  calls->give_back(fd);
  return true;
}

}  // namespace spw::interpose
