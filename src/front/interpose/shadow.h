// Native memory that stands for an asynchronous transfer on managed memory while libc or the kernel carries it out: a copy of its control
// block, and a bounce buffer for its data. What was read is copied to where the program wants it once the transfer is over, by whoever
// sees that first (aio.h, linux_aio.h).
//
//      made --add()--> under way --begin_end()--> ending --end()--> over
//       |                                                            |
//       +-- drop() --------------> freed <--- the last hold is gone -+
//
// Invariants: a shadow is in its table exactly while it is under way or ending, and the table holds it meanwhile. One thread gets true
//   from begin_end(), which waits while another one is at it. data.bytes of all shadows that are not freed <= kShadowBytesMax.
// Threads: any. Async-signal-safe but for make(), drop() and free_unused(): these allocate and free, everything else leaves what it
//   is the last to hold for them. The table's lock is held for a look through the table, and whoever holds it, or is between begin_end()
//   and end(), is inside of the runtime: handlers of the same thread wait until it is out, so none waits for what it interrupted.
// Ordering: end() makes what was written before it visible to whoever does not find the shadow any more (the lock), or finds that there is
//   none at all (is_empty()).
// Limits: below. Who jumps out of a handler that interrupted a wait (aio_suspend, lio_listio) leaves what it held there for good. What is
//   over keeps its memory until the next free_unused().
#pragma once

#include <aio.h>
#include <libaio.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <utility>

#include "base/atomic.h"
#include "base/in_runtime.h"
#include "base/units.h"
#include "front/interpose/bounce.h"

namespace spw::interpose {

// More are refused with EAGAIN. One transfer of more is not made longer than that, or done before it is handed over (done_at_once).
inline constexpr size_t kShadowBytesMax = 64 * kMiB;
inline constexpr size_t kShadowsMax = 4096;  // of each of the two interfaces

struct Shadow {
  Scatter scatter() const { return Scatter({pieces, piece_count}); }

  union {
    aiocb posix;
    iocb linux_block;
  };
  void* original = nullptr;  // the program's control block
  bool is_read = false;
  bool is_done_at_once = false;  // with done_result, which is an error if negative
  ssize_t done_result = 0;

  // Of a notification by thread that goes through here (aio_notify.h).
  void (*notify)(sigval) = nullptr;
  sigval notify_value{};

  // Where the data is in the program, and meanwhile.
  size_t bytes = 0;
  std::byte* data = nullptr;
  size_t piece_count = 0;
  iovec* pieces = nullptr;

  // The table's.
  enum class State : uint8_t { kUnderWay, kEnding, kOver } state = State::kUnderWay;
  unsigned holds = 1;
  const void* key = nullptr;
  Shadow* next_unused = nullptr;
};

// What a transfer is about.
struct Transfer {
  int fd;
  off_t offset;
  int flags;  // of preadv2()
  bool is_read;
  std::span<const iovec> pieces;
};

// For a transfer whose data is managed, at least in part: with a copy of what is written. nullptr: there is too much under way, or no
// memory. A transfer of more than kShadowBytesMax becomes short, as any may, where its file has no positions; where it has, nobody
// expects that, and it is done here, in pieces: is_done_at_once, and what is handed over has no data.
Shadow* make_shadow(void* original, const Transfer& transfer);
// Without data.
Shadow* make_shadow(void* original);

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
  // False: there are kShadowsMax.
  bool add(Shadow* shadow, const void* key);
  Held find(const void* key);
  // The first at `*place` or behind it, and where to go on; none: that was all.
  Held next(size_t* place);
  // In the runtime. The transfer is over. True: this thread copies what it read, and calls end(). False: that has been done.
  bool begin_end(Shadow& shadow);
  void end(Shadow& shadow);
  void let_go(Shadow* shadow);
  // Of what was never handed over: takes it out again, if it was added, and frees it.
  void drop(Shadow* shadow);
  // In the child of a fork, which has no transfers under way.
  void forked();

 private:
  class Lock;
  void take_out(Shadow& shadow);

  Atomic<bool> locked_{false};
  Atomic<size_t> count_{0};
  size_t end_ = 0;  // of the slots in use
  struct Slot {
    const void* key;
    Shadow* shadow;
  } slots_[kShadowsMax] = {};
};

extern ShadowTable posix_shadows;  // by the address of the program's control block
extern ShadowTable linux_shadows;  // by that of the shadow's

void free_unused_shadows();
// In the child of a fork, before anything else.
void shadows_forked();

}  // namespace spw::interpose
