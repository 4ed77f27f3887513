// Buffered descriptors, by the calls of libc: what a call on `fd` does where its file is buffered.
//
// Results: as the function's, or a negative errno, or kNotBuffered: the descriptor is the kernel's.
// Threads: any. Lifetime: the process's.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "files/descriptors.h"

namespace spw::files {

inline constexpr int64_t kNotBuffered = INT64_MIN;
inline constexpr int64_t kOwnPlace = -1;

class FileCalls {
 public:
  // `make`: is called once, for the first file; nullptr: not now. `patterns`: of the paths of the files that are
  // buffered (path_patterns.h). `warn`: is told of what is lost if nobody acts on it.
  FileCalls(Descriptors* (*make)(), std::string patterns, void (*warn)(std::string_view))
      : make_(make), patterns_(std::move(patterns)), warn_(warn) {}

  // `fd` has just been opened: it is buffered from now on if it is one of the files to be. True: it is.
  // `path`: by which it was opened; nullptr: that is not known.
  bool opened(int fd, int flags, const char* path = nullptr);
  // It was opened by libc for itself: its file is the kernel's. `flags`: as of open().
  void opened_by_libc(int fd, int flags);
  bool is_buffered(int fd);
  // The same, or its file is on trial (trial.h), so that it may be buffered by the next call.
  bool has(int fd);
  // Its file is buffered from now on, if it is on trial and may be.
  void end_trial(int fd);
  // What is asked of `fd`, which is not buffered, is asked of the kernel while this lives; or again, where it is
  // buffered after all.
  class KernelCall {
   public:
    using Counts = Descriptors::KernelCall::Counts;
    KernelCall(FileCalls& calls, int fd, Counts counts = Counts::kNot);
    KernelCall(FileCalls& calls, uint64_t device, uint64_t inode);
    ~KernelCall();
    KernelCall(const KernelCall&) = delete;
    KernelCall& operator=(const KernelCall&) = delete;
    bool is_over() const { return call_ && call_->is_over(); }
    void moved(int64_t bytes) {
      if (call_ && bytes > 0) call_->moved(static_cast<uint64_t>(bytes));
    }

   private:
    std::optional<Descriptors::KernelCall> call_;
  };
  // It is one of the files to be buffered, or is buffered.
  bool is_wanted(int fd);
  // `offset`: kOwnPlace is that of the open file.
  int64_t read(int fd, std::span<const iovec> to, int64_t offset);
  int64_t write(int fd, std::span<const iovec> from, int64_t offset);
  int64_t seek(int fd, int64_t offset, int whence);
  int64_t resize(int fd, int64_t bytes);
  int64_t extend(int fd, int64_t bytes);  // resize(), if that makes it longer
  int64_t sync(int fd, bool whole);
  // What was written has reached the kernel's file, for a call that asks the kernel about it.
  int64_t flush(int fd);
  int64_t size(int fd);
  // Of the file with this number, if it is buffered.
  int64_t size_of(uint64_t device, uint64_t inode);
  int64_t flush_file(uint64_t device, uint64_t inode);
  int64_t resize_file(uint64_t device, uint64_t inode, int64_t bytes);
  // The descriptor is about to be closed; all of [first, last] are.
  int64_t close(int fd);
  void close_range(int first, int last);
  void flags_changed(int fd, int flags);
  // The file of this descriptor is the kernel's from now on, with all its descriptors: for what only the kernel can do.
  void give_back(int fd);
  // `to` has just become a duplicate of `from`.
  void duplicated(int from, int to);
  // The program has got a lock of the file; is about to give one up, or some of it (other_openers.h).
  void lock_taken(int fd);
  void lock_ends();
  // Descriptors are about to be sent to another process.
  void handed_out();
  // All files reach the kernel, and its descriptors stand where ours do: this process is about to be another program's,
  // to have a child, or to end at once.
  // False: not all of it, which has been said.
  bool settle();
  // This process is about to have a child that goes on with its open files.
  void before_fork();

 private:
  template <class With>
  int64_t with(int fd, With with_file);
  int64_t given_back(Descriptors& descriptors, BufferedFile& file);
  void left_out(Descriptors& descriptors, int fd, int flags, const platform::FileStamp& stamp);

  Descriptors* (*const make_)();
  Atomic<Descriptors*> descriptors_{nullptr};
  const std::string patterns_;
  void (*const warn_)(std::string_view);
};

}  // namespace spw::files
