// Writing dirty blocks of files before anybody has to wait for them:
// when too many are dirty, or when some have been for too long.
//
//   direct      the threads that make blocks dirty write them (ScaleCache, EuroSys '24, section 5: direct flush). A thread begins to write the
//               next dirty blocks of a file that nobody flushes, its own if that
//                   has enough, in their order, and goes on. The next batch of
//               that file is begun when this one has been written, by whoever
//                   writes to a file then: nobody waits. Who writes faster than
//               the disk waits for frames, as all do
//   background  one thread does all of it, as kernels do, and waits for each batch
//   auto        the one of these that gets more written, found out by trying (flush_choice.h)
//
// Either way a block that has to leave the cache is written by whoever needs its frame,
// and a thread of the flusher's own writes what has been dirty for longer than
// `after_ns`, so that a process that is killed has lost no more than what it wrote since.
//
// Threads: any. after_write() takes locks of the file. Lifetime: files outlive neither the flusher nor its caller;
//   stop() ends the thread, which start() began.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/atomic.h"
#include "base/status.h"
#include "files/flush_choice.h"
#include "platform/thread.h"
#include "telemetry/counters.h"

namespace spw::files {

class BufferedFile;

struct FlushOptions {
  enum class By : uint8_t { kAuto, kDirect, kBackground };
  By by = By::kAuto;
  unsigned dirty_percent = 100;  // of the cache's blocks, dirty ones of files at most before they are flushed
  uint64_t after_ns = 0;         // 0: dirty blocks may stay so
};

class Flusher {
 public:
  static constexpr uint64_t kFlushTurnBlocks = 256;
  // The files there are, now.
  using List = std::function<std::vector<std::shared_ptr<BufferedFile>>()>;

  Flusher(const FlushOptions& options, uint32_t frames, List list)
      : options_(options),
        dirty_max_(uint64_t{frames} * options.dirty_percent / 100),
        list_(std::move(list)) {}
  ~Flusher() { stop(); }

  // The thread that the options ask for, if any.
  Status start();
  void stop();
  // Dirty blocks of all files.
  Atomic<uint64_t>& dirty_blocks() { return dirty_blocks_; }
  // A thread has written so many blocks of the file, and holds nothing.
  void after_write(BufferedFile& file, uint64_t blocks) {
    telemetry::count(telemetry::Counter::file_writes, blocks);
    if (dirty_blocks_.load_relaxed() > dirty_max_) [[unlikely]]
      relieve(file);
  }

 private:
  void relieve(BufferedFile& file);
  bool is_direct();
  bool flush_one_of_all(bool waits);
  void flush_old(uint64_t now_ns);
  void run();

  // Of the writes to files with few dirty blocks, every so-manieth looks for a file with more.
  static constexpr uint64_t kSmallWritesEach = 64;

  const FlushOptions options_;
  const uint64_t dirty_max_;
  const List list_;
  Atomic<uint64_t> dirty_blocks_{0};
  Atomic<uint64_t> small_writes_{0};
  Atomic<bool> is_wanted_{false};  // background: the thread has been woken
  FlushChoice choice_;             // auto
  std::mutex mutex_;               // guards what follows
  std::condition_variable wake_;
  bool stopping_ = false;
  platform::Thread thread_;
};

}  // namespace spw::files
