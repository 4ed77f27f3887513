// A running process's counters, where another process of the same user can read them: what `spillway top` shows.
//
// The counters of counters.h lie in a memory file behind a header. The process keeps the file open under kLivePageName,
// so that a reader finds it among /proc/PID/fd; it has no name in any directory and is gone with the process. Nothing
// is copied or sent: counting costs what it always costs, whether somebody reads or not. The file's size is sealed, so
// that a reader can map it without fear of SIGBUS, and whoever reads believes nothing else of what stands in it.
//
// Layout: LiveHeader, at kAreasOffset the areas (areas.h), at kBlocksOffset `used` CounterBlocks.
// Threads: publish() once; a reader's functions one at a time. Ordering: `used` is stored with release after a block is
// made and read with acquire; each word is as of some recent instant (counters.h).
// Limits: threads that count at the same time, kThreadsMax; those beyond are not seen.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/atomic.h"
#include "base/status.h"
#include "platform/file.h"
#include "platform/memory.h"
#include "telemetry/areas.h"
#include "telemetry/counters.h"
#include "telemetry/report.h"

namespace spw::telemetry {

inline constexpr const char* kLivePageName = "spillway-live";

struct LiveHeader {
  static constexpr uint64_t kMagic = 0x6576694c77705321;  // "!SpwLive"
  static constexpr size_t kTextBytes = 256;

  uint64_t magic = 0;
  // Two builds that count different things do not understand each other.
  uint32_t counter_count = 0;
  uint32_t schema = 0;
  uint64_t process = 0;     // a forked child has the file open, too, but counts for itself
  uint64_t started_ns = 0;  // CLOCK_MONOTONIC
  uint64_t block_bytes = 0;
  uint64_t memory_cap_bytes = 0;
  uint64_t frames = 0;
  char program[kTextBytes] = {};
  char engine[kTextBytes] = {};
  char store[kTextBytes] = {};
  Atomic<uint32_t> used{0};
};

class LivePage {
 public:
  static constexpr size_t kAreasOffset = 4096;
  static constexpr size_t kBlocksOffset = kAreasOffset + sizeof(AreaTable);
  static constexpr size_t kThreadsMax = 8192;
  static constexpr size_t kBytes = kBlocksOffset + kThreadsMax * sizeof(CounterBlock);
  static_assert(sizeof(LiveHeader) <= kAreasOffset && kBlocksOffset % alignof(CounterBlock) == 0);

  // Moves this process's counting into a page that others can read. `facts`: what stands in its header.
  static Result<LivePage> publish(const Facts& facts, uint64_t started_ns);
  // Another process's, by its number in this namespace of process ids. ESRCH: there is no such process, or it publishes
  // none; EACCES: it is somebody else's; EPROTO: it is of another version.
  static Result<LivePage> open(uint64_t process);
  // The page in a file. `who`: whose it is, for messages. EPROTO: it is none, of another version, or not sealed.
  static Result<LivePage> open_file(platform::File file, const std::string& who);
  // Processes of this user that publish a page.
  static std::vector<uint64_t> processes();

  const LiveHeader& header() const { return *reinterpret_cast<const LiveHeader*>(memory_.data()); }
  Totals totals() const;
  Latencies miss_latencies() const;
  std::vector<Area> areas() const;
  // Which blocks threads missed last: of each that has missed any since `before` up to kRecentMisses, which stand for
  // as many as it had. `before` becomes what they have missed by now.
  struct Missed {
    uint64_t block;
    double misses;
  };
  // The same of where in the program's code they were (counters.h); 0: not known.
  struct Placed {
    uint64_t place;
    double misses;
  };
  using MissCounts = std::vector<uint64_t>;  // of each thread
  MissCounts miss_counts() const;
  std::vector<Missed> missed_since(MissCounts& before) const;
  std::vector<Placed> placed_since(const MissCounts& before) const;
  // What happened last to blocks, in the order of time: of each thread up to TraceRing::kEntries. `seen`: how many of
  // each were given before, and with these now.
  struct Traced {
    size_t thread;  // its number here
    TraceEntry entry;
  };
  using TraceCounts = std::vector<uint64_t>;
  std::vector<Traced> trace_since(TraceCounts& seen) const;

 private:
  std::span<const CounterBlock> blocks() const;
  static MissCounts miss_counts(std::span<const CounterBlock> blocks);

  platform::File file_;
  platform::Mapping memory_;
};

}  // namespace spw::telemetry
