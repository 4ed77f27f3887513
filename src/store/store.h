// Stores: where blocks live when they are not in memory.
//
// A Store is a byte space [0, size_bytes). An IoQueue carries asynchronous batches to it. Every request gets
// exactly one completion with its own status; a completion that says ok moved every byte. Short transfers are
// continued and transient errors (EINTR, EAGAIN, ECANCELED, EIO) retried below this interface, at most
// kRetriesMax times without progress, and counted.
//
// Threads: a Store may be used by any number of threads. An IoQueue is used by one thread at a time (the
// caller serialises), except that wait() may run in one thread while another submits, and kick() in any (see IoQueue).
// Lifetime: queues are destroyed before their store, with nothing in flight. A request and its buffers belong
// to the queue from submit() or enqueue() until its completion is reaped.
// Limits: kSegmentsMax segments a request, queue depth as opened; a request's offset, and every segment's
// address and length, are multiples of alignment_bytes(), or it fails with EINVAL.
// Ends: a request begins before size_bytes() and ends less than kMaxBlockBytes behind it, or it fails with
// EINVAL. What lies behind the end reads as zeros and is never written: a file keeps its size though its end
// is inside its last block.
// Reads: what was never written reads as zeros.
#pragma once

#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/atomic.h"
#include "base/status.h"
#include "base/units.h"

namespace spw::platform {
class File;
}

namespace spw::store {

inline constexpr uint64_t kMaxBlockBytes = uint64_t{1} << kMaxBlockShift;
inline constexpr size_t kSegmentsMax = 64;
inline constexpr unsigned kRetriesMax = 3;
// The error of a read that is not what was written (see checked_store.h); no call that a store makes fails with it.
inline constexpr int kNotAsWritten = EBADMSG;

enum class Op : uint8_t { kRead, kWrite, kDiscard, kSync };

// One transfer. kDiscard uses discard_bytes, kSync neither; the others move sum of segment lengths bytes.
struct Request {
  Op op = Op::kRead;
  uint32_t segment_count = 0;
  uint64_t offset_bytes = 0;
  uint64_t discard_bytes = 0;
  iovec segments[kSegmentsMax];  // the first segment_count are meant
  void* user = nullptr;          // the caller's own

  uint64_t bytes() const;
};

struct Completion {
  Request* request = nullptr;
  int error = 0;  // 0, or a positive errno
};

// What a thread that waits for other things, too, sleeps at in place of IoQueue::wait(): until `fd` is readable (-1:
// there is none), or timeout_ns passed.
struct Sleep {
  int fd = -1;
  uint64_t timeout_ns = UINT64_MAX;
};

class IoQueue {
 public:
  virtual ~IoQueue() = default;
  // Takes requests in order while fewer than depth() are in flight; returns how many it took. Never blocks on
  // I/O beyond what the kernel's submission does. A request that cannot be issued completes with an error.
  size_t submit(std::span<Request* const> requests) {
    const size_t taken = enqueue(requests);
    kick();
    return taken;
  }
  // The same in two steps, since to start requests takes a while: those that enqueue() took are under way after the
  // next kick(), or wait() that sleeps, at the latest. Any thread may kick, beside everything else.
  virtual size_t enqueue(std::span<Request* const> requests) = 0;
  virtual void kick() = 0;
  // Takes up to out.size() completions that are there already; never blocks.
  virtual size_t reap(std::span<Completion> out) = 0;
  // Blocks until at least one completion can be reaped, timeout_ns passed (UINT64_MAX: no limit) or wake()
  // was called; reaps nothing. May return early with nothing to reap, so it stands in a loop. May run in one
  // thread while another thread submits or reaps.
  virtual void wait(uint64_t timeout_ns) = 0;
  // Of the thread that uses the queue, when it has kicked: how to sleep until a completion can be reaped, maybe not so
  // long. nullopt: only wait() knows.
  virtual std::optional<Sleep> sleep() { return std::nullopt; }
  // Ends a wait() from any thread, now or the next one. Async-signal-unsafe.
  virtual void wake() = 0;
  virtual size_t in_flight() const = 0;
  virtual size_t depth() const = 0;
};

class Store {
 public:
  virtual ~Store() = default;
  virtual std::string describe() const = 0;  // "spill:/mnt/nvme (io_uring, O_DIRECT)"
  // For messages about one place: a store of several parts names the one that the byte is in.
  virtual std::string describe_at(uint64_t offset_bytes) const;
  virtual uint64_t size_bytes() const = 0;
  virtual uint64_t alignment_bytes() const = 0;
  // Nothing was ever written at or behind *written_end(), which reads as zeros; nullptr: anything may have been. What
  // it points to is never freed, and may be another store's once this one is gone.
  virtual const Atomic<uint64_t>* written_end() const { return nullptr; }
  virtual Result<std::unique_ptr<IoQueue>> open_queue(size_t depth) = 0;
  // Most stores like this one see few requests and then go: transfer() is cheaper for them than to open a queue is.
  virtual bool is_short_lived() const { return false; }
  // The same transfer, done by the calling thread before it returns. The cheapest way to do one demand read.
  virtual Status transfer(Request& request) = 0;
  // Makes sure that a later write to [offset, offset + bytes) cannot fail for want of space, where the store
  // can promise that; ENOSPC if there is none.
  virtual Status reserve(uint64_t offset_bytes, uint64_t bytes) = 0;
  // It reads what a request writes, when that is submitted: who has it fetched from memory before saves time.
  virtual bool looks_at_contents() const { return false; }
  // A file that has the same bytes at the same places, for mmap(); nullptr: there is none.
  virtual const platform::File* file_to_map() const { return nullptr; }
  // What it stands on is written by the program's own calls, too, from now on, through the kernel's page cache.
  virtual void share_page_cache() {}
  // Around a fork, in the parent: what lock_for_fork() waits for the child finds whole.
  virtual void lock_for_fork() {}
  virtual void unlock_after_fork() {}
  // In a forked child, by the only thread there is, in place of unlock_after_fork(): other locks that its parent's
  // threads had are nobody's.
  virtual void in_child() {}
};

}  // namespace spw::store
