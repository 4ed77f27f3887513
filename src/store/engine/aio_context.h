// A context of the kernel's older asynchronous I/O, and its ring of results, which lies in this process's memory and is
// read there without a system call.
//
// The kernel takes some 30 ms to destroy a context. So none is destroyed: who gives one up leaves it to the next that
// takes one. What a child of fork() has inherited is its parent's: it is never taken, and not kept when it comes back.
//
// Threads: take() and what gives one up, any; submit() by one thread at a time, and the two that look at results by
// one, beside it. Whoever gives one up has taken the results of all that was submitted.
// Limits: the kernel's fs.aio-max-nr, over all processes; kKeptMax contexts are kept for the next, and what comes back
// beyond that stays unused until the process ends.
#pragma once

#include <linux/aio_abi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/status.h"
#include "platform/async_contexts.h"

namespace spw::store {

class AioContext {
 public:
  static constexpr size_t kKeptMax = 256;

  struct GiveBack {
    void operator()(AioContext* context) const;
  };
  using Taken = std::unique_ptr<AioContext, GiveBack>;

  // One that is not set up yet, for whoever may not allocate when he takes one.
  static std::unique_ptr<AioContext> make() { return std::unique_ptr<AioContext>(new AioContext); }
  // Room for `depth` transfers at a time: one that was kept, or `made`, which is set up. EAGAIN: fs.aio-max-nr; EPERM,
  // ENOSYS: it is forbidden, or not there.
  static Result<Taken> take(size_t depth, std::unique_ptr<AioContext>* made);
  static Result<Taken> take(size_t depth) {
    auto made = make();
    return take(depth, &made);
  }
  // Whether the kernel has them at all.
  static bool exist();
  // Whether this process has made one, so that it ends late in any case.
  static bool is_one_there();
  // In a forked child, by the only thread there is.
  static void in_child();

  // How many of them it took, from the first on, or a negative errno of the first.
  int submit(std::span<iocb*> controls);
  // False: there are none. True where only the kernel knows.
  bool may_have_results() const;
  // How many there were; or a negative errno.
  int take_results(std::span<io_event> out);

 private:
  struct Ring;

  AioContext() = default;
  bool is_readable() const;

  aio_context_t id_ = 0;
  size_t depth_ = 0;
  uint32_t generation_ = 0;  // of its process: how many forks lie before it
  Ring* ring_ = nullptr;
  std::optional<platform::OwnAsyncContext> own_;
};

}  // namespace spw::store
