// Write combining: which of the lines that a thread stores to inside a failure-atomic section are handed over to be
// written back, and when. (Li, Chakrabarti, Ding, Yuan: "Adaptive Software Caching for Efficient NVRAM Data
// Persistence", sections II-B and III-C.)
//
// All stores of a section have to be durable when it ends. The sooner a line is flushed, the less is left to wait for
// at the end; the later, the more stores to it share one flush. Each technique is an answer to that:
//
//   kEager    (ER) each store's line by itself, before the next store
//   kLazy     (LA) each line once, all of them at the end
//   kTable    (AT) a direct-mapped table of eight lines, as in Atlas: a line leaves when another needs its entry
//   kAdaptive (SC) an LRU cache of lines, fully associative; its size is chosen from a burst of the thread's own writes
//   kFixed    (SC-offline) the same with a size given, from a profile of an earlier run
//   kNone     (BEST) nothing is ever flushed: NOT durable; it bounds what any technique can reach
//
// Invariants, for all but kNone, between two calls:
//     lines held = lines written in this section and not flushed
//         since;  lines held <= size();  after end_section(): none
//     a call flushes only lines whose stores have all happened: written(x)
//         comes before the store to x and never flushes x for it
//     (kEager may flush x there, for the store before)
// Threads: a combiner belongs to one thread and takes no lock; a LineFlusher is called by that thread, from within
// written() and end_section(), and calls no combiner.
// Memory: allocated when made; besides, only kLazy (with the lines of
// a section) and what watches writes (line_profile.h) grow.
// Limits: sizes up to kCombinerSizeMax lines. A line is not UINT64_MAX, which no address shifted by a grain is.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"

namespace spw::durable {

enum class Technique : uint8_t { kEager, kLazy, kTable, kAdaptive, kFixed, kNone };

// Number of a grain (64-byte line, or 4096-byte block): address >> grain_shift.
using Line = uint64_t;
inline constexpr Line kNoLine = UINT64_MAX;

inline constexpr uint32_t kCombinerSizeMax = 4096;  // lines

// What a technique hands lines over to, to be written back.
class LineFlusher {
 public:
  virtual void flush(Line line) = 0;

 protected:
  ~LineFlusher() = default;
};

struct CombinerOptions {
  Technique technique = Technique::kAdaptive;
  // kAdaptive: the size before it is chosen, at most size_max; and
  // the largest that may be chosen (section III-C). In lines.
  uint32_t size_start = 8;
  uint32_t size_max = 50;
  // kAdaptive: the writes that are watched before the size is chosen, once and for good.
  uint64_t burst_writes = uint64_t{64} << 20;
  // kFixed: the size, in lines.
  uint32_t fixed_size = 8;
  // Watches all writes, whatever the technique, for profiled_size().
  // Costs some tens of nanoseconds each time the line changes.
  bool profiles = false;
};

class WriteCombiner {
 public:
  virtual ~WriteCombiner() = default;
  // The thread is about to store to `line`: it is called before the store.
  virtual void written(Line line) = 0;
  // Everything still held is flushed; the next write belongs to another section.
  virtual void end_section() = 0;
  // Lines it holds at most; UINT32_MAX: no limit.
  virtual uint32_t size() const = 0;
  // With options.profiles: the best size for all writes so far, from 1 to options.size_max. Otherwise 0.
  virtual uint32_t profiled_size() const { return 0; }
};

// `flusher` outlives it.
std::unique_ptr<WriteCombiner> make_combiner(const CombinerOptions& options, LineFlusher& flusher);

// "eager", "lazy", "table", "adaptive", "fixed:SIZE", "none", or as the paper calls
// them: "er", "la", "at", "sc", "sc:SIZE", "best". What the text says, all else
// from `defaults`. EINVAL: a sentence that says what is wrong and what is allowed.
Result<CombinerOptions> parse_technique(std::string_view text, CombinerOptions defaults);

}  // namespace spw::durable
