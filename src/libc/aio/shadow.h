// Native memory that stands for a request of POSIX asynchronous I/O on managed memory while libc carries it out: a copy
// of its control block, and a bounce buffer for its data. What was read is copied to where the program wants it once
// the request is over, by whoever sees that first (aio.h).
//
//      made --add()--> under way --begin_end()--> ending --end()--> over
//       |                                                            |
//       +-- never added --------> unused <--- the last hold is gone -+
//
// Invariants: a shadow is in the table exactly while it is under way or ending, and the table holds it meanwhile. One
//   thread gets true from begin_end(), which waits while another one is at it. The bounce buffer goes at the end,
//   whoever still holds the shadow: the sum of data.bytes <= shadow_bytes_max().
// Threads: any. Async-signal-safe but for make_shadow() and free_unused_shadows(): these allocate and free, everything
//   else unmaps, or leaves what it is the last to use for them. The table's lock is held for a look through the table,
//   and whoever holds it, or is between begin_end() and end(), is inside of the runtime: handlers of the same thread
//   wait until it is out, so none waits for what it interrupted.
// Ordering: end() makes what was written before it visible to whoever does not find the shadow any more (the lock), or
//   finds that there is none at all (is_empty()).
// Limits: below. Who jumps out of a handler that interrupted aio_suspend or
//   lio_listio leaves the shadows there for good, without their buffers.
#pragma once

#include <aio.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <utility>

#include "base/atomic.h"
#include "base/in_runtime.h"
#include "base/units.h"
#include "libc/io/bounce.h"

namespace spw::libc {

inline constexpr size_t kShadowBytesMax = 64 * kMiB;
inline constexpr size_t kShadowShare = 4;  // of the process's memory, a fourth
inline constexpr size_t kShadowsMax = 4096;
// Buffers of at least this size are unmapped at the end, others wait for the next free_unused_shadows().
inline constexpr size_t kShadowMappedBytes = 128 * kKiB;

// What all bounce buffers may have together; more are refused with EAGAIN.
size_t shadow_bytes_max();

struct Shadow {
  // What the program gave, as long as `data` stands for it.
  Scatter scatter() const { return Scatter({&piece, 1}); }

  aiocb posix{};
  void* original = nullptr;  // the program's control block
  bool is_read = false;
  bool is_done_at_once = false;  // by aio.cc, with done_result, which is an error if negative
  ssize_t done_result = 0;

  // Of a notification by thread that goes through here (aio_notify.h).
  void (*notify)(sigval) = nullptr;
  sigval notify_value{};

  // Where the data is in the program, and meanwhile.
  iovec piece{};
  size_t bytes = 0;
  std::byte* data = nullptr;

  // The table's.
  enum class State : uint8_t { kUnderWay, kEnding, kOver } state = State::kUnderWay;
  unsigned holds = 1;
  Shadow* next_unused = nullptr;
};

// With a bounce buffer of `bytes` for `piece` (0: without), which holds what is there if it is to be written. nullptr:
// there is too much under way, or no memory.
Shadow* make_shadow(void* original, const iovec& piece, size_t bytes, bool is_read);

class ShadowTable {
 public:
  // While one lives, its shadow is not freed.
  class Held {
   public:
    Held() = default;
    Held(ShadowTable& table, Shadow* shadow) : table_(&table), shadow_(shadow) {}
    Held(Held&& other) noexcept : table_(other.table_), shadow_(std::exchange(other.shadow_, nullptr)) {}
    ~Held() {
      if (shadow_ != nullptr) table_->let_go(shadow_);
    }
    Held& operator=(Held&&) = delete;
    explicit operator bool() const { return shadow_ != nullptr; }
    Shadow* operator->() const { return shadow_; }
    Shadow* get() const { return shadow_; }
    // let_go() follows.
    Shadow* release() { return std::exchange(shadow_, nullptr); }

   private:
    ShadowTable* table_ = nullptr;
    Shadow* shadow_ = nullptr;
  };

  // Pairs with the release in end().
  bool is_empty() const { return count_.load_acquire() == 0; }
  // The table's hold is one more. False: there are kShadowsMax.
  bool add(Shadow* shadow);
  // By the program's control block.
  Held find(const void* original);
  // The first at `*place` or behind it that seems to be over, and where to go on; none: that was all.
  Held next_over(size_t* place);
  // In the runtime. The request is over. True: this thread copies
  // what it read, and calls end(). False: that has been done.
  bool begin_end(Shadow& shadow);
  void end(Shadow& shadow);
  // The last one leaves it, and a buffer that no end() has taken, for free_unused_shadows().
  void let_go(Shadow* shadow);
  // In the child of a fork, which has no requests under way.
  void forked();

 private:
  class Lock;
  void take_out(Shadow& shadow);

  Atomic<bool> locked_{false};
  Atomic<size_t> count_{0};
  size_t end_ = 0;  // of the slots in use
  struct Slot {
    const void* original;
    Shadow* shadow;
  } slots_[kShadowsMax] = {};
};

extern ShadowTable posix_shadows;

void free_unused_shadows();
// Those that are not freed: for tests.
size_t shadow_count();
// In the child of a fork, before anything else.
void shadows_forked();

}  // namespace spw::libc
