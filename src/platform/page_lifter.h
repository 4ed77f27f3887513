// Takes pages of this process away from their addresses, with what they hold at that moment, many at a time.
//
// A pipe takes references to the pages (vmsplice), they are given up at their addresses by one call, and the pipe is
// read. Until the second step stores go to the pages that the pipe has; after it they fault. So no store is lost, and
// the processors that run the program are interrupted once, not for each page.
//
// Only for private pages that nobody else has in common: a store to such a one goes to a copy, after the pipe has
// taken the page. The caller sees to it that there has been no fork, and that none of the pages is all zero (it may be
// the kernel's page of zeros, also after a huge page was split). Nothing is lifted where the kernel may merge equal
// pages of this process, or swaps to a device that has to have pages unchanged while they are written (zram): one that
// comes back meanwhile is in common with the swap cache.
//
// Threads: any; several lift at the same time, each through a pipe of its own.
// Limits: kPagesMax at a time. Where the user's pipes may have no more memory (/proc/sys/fs/pipe-user-pages-soft), or
// the kernel gives up pages one by one (before Linux 6.13), nothing is lifted.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <mutex>
#include <span>

#include "base/atomic.h"
#include "platform/file.h"
#include "platform/userfault.h"

namespace spw::platform {

class PageLifter {
 public:
  static constexpr size_t kPagesMax = 64;

  // `releaser` lives longer.
  explicit PageLifter(const RangeReleaser& releaser);
  // False: from now on it never is.
  bool is_able() const { return is_able_.load_relaxed(); }
  // False: the pages are where they were. `to`: as many pages.
  bool lift(std::span<const iovec> pages, std::span<const iovec> to);

 private:
  static constexpr uint32_t kPipes = 4;
  struct Pipe {
    std::mutex mutex;
    bool is_tried = false;
    File in, out;
    void close() { in = File(), out = File(); }
  };
  enum class Lifted { kYes, kNo, kWithoutPipe };
  static bool open(Pipe& pipe);
  Lifted lift_through(Pipe& pipe, std::span<const iovec> pages, std::span<const iovec> to) const;

  const RangeReleaser& releaser_;
  File swaps_;  // the kernel's list, which tells of changes
  Atomic<bool> is_able_{false};
  Atomic<uint32_t> lifting_{0};  // threads
  Pipe pipes_[kPipes];
};

}  // namespace spw::platform
