// Keeps what is in memory of the mappings in a table within a limit.
//
// The kernel brings pages in by itself, without a word to anybody, and at a price that nobody
// in user space can match: the page that it reads into is the one that is mapped. What it
// does badly is to choose what goes, and to keep a limit. So a thread looks at how many
// pages are present, as often as the limit asks for, and evicts by a clock with two hands:
//   the front hand goes over the mappings in order of addresses and unmaps what is present, a part at a time;
//   the back hand follows it, at a distance of a share (kLagShare) of
//       the limit, and drops what it unmapped from the page cache.
// What is touched between the two is mapped again by a fault that reads nothing, and the back hand leaves it alone.
//
// How fast it looks: what is left below the limit fills at kFillBytesPerS at most, on the fastest disk we know of. It
// begins to evict at a share (kSlackShare) below the limit; so the limit is exceeded only if the disk is faster, or if
// this thread does not get a processor in time. Where it falls behind nevertheless, because more threads fault than
// there are processors, it has others help until it has caught up, as many as there are threads that keep the
// processors from it: each gets a thread's share.
//
// How many pages are present: what the kernel counts for the process, less what other
// mappings of files have. These are what is left when all pages in the table are counted,
// which happens from time to time, at a share (kCountShare) of the time at most, and tells
// the table how its mappings are used.
//
// Threads: start() and stop() by one; the limit is asked for in a thread of the evictor's own. Errors: of the threads.
// A mapping that cannot be unmapped (the program locked it in memory) leaves the table, and `lost` is told.
// Lifetime: shorter than the table's. Limits: kHandsMax.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/atomic.h"
#include "page_cache/mapping_table.h"
#include "platform/file_pages.h"
#include "platform/thread.h"

namespace spw::page_cache {

// What is in memory, in pages.
struct Use {
  uint64_t present = 0;
  uint64_t unmapped = 0;  // and not dropped yet; some of them may be present again
  uint64_t dropped = 0;   // since the start
  uint64_t total() const { return present + unmapped; }
};

class Evictor {
 public:
  static constexpr uint64_t kLagShare = 8;
  static constexpr uint64_t kSlackShare = 16;
  static constexpr uint64_t kFillBytesPerS = 4'000'000'000;
  static constexpr uint64_t kCountShare = 100;
  static constexpr unsigned kHandsMax = 16;

  // How many pages may be in memory, given how many are.
  using Limit = std::function<uint64_t(const Use&)>;
  using Lost = void (*)(std::string_view why);

  Evictor(MappingTable& table, const platform::FilePages& pages, Limit limit, Lost lost)
      : table_(table), pages_(pages), limit_(std::move(limit)), lost_(lost) {}
  ~Evictor() { stop(); }

  // Starts the thread if there is none yet, and wakes one that sleeps over an empty table.
  Status start();
  void stop();
  Use use() const;
  // As last asked for.
  uint64_t limit_pages() const { return limit_pages_.load_relaxed(); }

 private:
  static constexpr size_t kRunsMax = 512;
  static constexpr uint64_t kPartPages = 512;  // wanted in a part
  static constexpr uint64_t kPartBytesMin = 2u << 20, kPartBytesMax = 1u << 30;
  static constexpr uint64_t kSlackPagesMin = 64;
  static constexpr uint64_t kWaitNsMin = 100'000, kWaitNsMax = 20'000'000;
  static constexpr uint64_t kCountNsMin = 5'000'000;
  static constexpr uint64_t kSliceNs = 200'000;
  static constexpr uint64_t kRoundsMax =
      3;  // of the front hand: after so many, what is counted as present is not

  struct Unmapped {
    Mapping part;
    uint64_t pages;
  };

  void run();
  void work(unsigned number);
  bool wait(uint64_t ns);
  unsigned wanted_hands(uint64_t limit, uint64_t total) const;
  void set_hands_at_work(unsigned count);
  uint64_t wait_after(uint64_t limit, uint64_t total, uint64_t last_wait_ns) const;
  uint64_t measure_present();
  uint64_t measure();
  void count_all();
  void add_to_units(const platform::FilePages::Run& run, uintptr_t part_begin);
  // Pages, since the start; what is touched again after it was unmapped is counted once more.
  uint64_t came() const { return use().total() + use().dropped; }
  bool evict_part();
  std::optional<Mapping> take_part();
  std::vector<Unmapped> queue_and_take_oldest(Unmapped newest);
  template <class Look>
  void look_over(const Mapping& part, Look look) const;
  bool unmap(const Mapping& part, uint64_t* pages);
  void drop(const Mapping& part);

  MappingTable& table_;
  const platform::FilePages& pages_;
  const Limit limit_;
  const Lost lost_;

  std::mutex mutex_;  // for what follows, up to the thread
  std::condition_variable wake_, wake_hands_;
  bool started_ = false, stopping_ = false;
  unsigned hands_at_work_ = 0;  // the first thread changes it
  std::deque<Unmapped> queue_;
  uintptr_t hand_ = 0;
  platform::Thread thread_;

  // The first thread's alone.
  std::vector<platform::Thread> hands_;
  uint64_t round_to_count_ = 0;
  uint64_t counted_ = 0, came_by_count_ = 0, count_after_ns_ = 0;
  std::vector<uint16_t> units_;  // of the part that is counted: how many pages of each are present
  uint64_t last_total_ = 0;

  Atomic<uint64_t> others_{0};  // present pages of other mappings
  Atomic<uint64_t> rounds_{0};  // of the front hand
  Atomic<uint64_t> part_bytes_{kPartBytesMin};
  Atomic<uint64_t> lag_pages_{0};
  Atomic<uint64_t> present_{0}, dropped_{0};
  Atomic<uint64_t> unmapped_{0};  // in the queue; changes under the mutex
  Atomic<uint64_t> limit_pages_{0}, goal_{0};
};

}  // namespace spw::page_cache
