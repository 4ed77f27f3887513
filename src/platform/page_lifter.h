// Takes pages of this process away from their addresses, with what they hold at that moment, many at a time.
//
// A pipe takes references to the pages (vmsplice), they are given up at their addresses by one call, and the pipe is
// read. Until the second step stores go to the pages that the pipe has; after it they fault. So no store is lost, and
// the processors that run the program are interrupted once, not for each page.
// Only for private pages that nobody else has in common, neither a fork nor the kernel, which may merge equal ones
// (KSM): a store to such a one goes to a copy, after the pipe has taken the page.
//
// Threads: any; several lift at the same time, each through a pipe of its own.
// Limits: kPagesMax at a time. Where the user's pipes may have no more memory (/proc/sys/fs/pipe-user-pages-soft), or
// the kernel gives up pages one by one (before Linux 6.13), nothing is lifted.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <mutex>
#include <span>

#include "platform/file.h"
#include "platform/userfault.h"

namespace spw::platform {

// Whether the kernel has been told to merge equal pages of this process (PR_SET_MEMORY_MERGE, which is inherited).
bool may_be_merged();

class PageLifter {
 public:
  static constexpr size_t kPagesMax = 64;

  // False: the pages are where they were. `to`: as many pages.
  bool lift(std::span<const iovec> pages, std::span<const iovec> to, const RangeReleaser& releaser);

 private:
  static constexpr size_t kPipes = 4;
  struct Pipe {
    std::mutex mutex;
    bool is_tried = false;
    File in, out;
    void close() { in = File(), out = File(); }
  };
  bool open(Pipe& pipe);
  bool lift_through(Pipe& pipe, std::span<const iovec> pages, std::span<const iovec> to,
                    const RangeReleaser& releaser);

  Pipe pipes_[kPipes];
};

}  // namespace spw::platform
