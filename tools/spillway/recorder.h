// Looks at all processes of a run from outside, now and then, and keeps what it saw: for `--report` and `--metrics`.
//
// The processes are those below this one that publish a page (telemetry/live_page.h) and have the run's ledger in their
// environment (process/tree_cap.h). Reading takes nothing from them: they count as they always do.
// What a process did between the last look and its end is not seen here; reports of --stats and the ledger have it.
// Threads: one at a time. Limits: kSamplesMax samples, of which every other one goes when there are more, and the time
// between two looks doubles; kPlacesMax places in the code of a process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "code_names.h"
#include "metrics_text.h"
#include "process/tree_cap.h"
#include "telemetry/live_page.h"

namespace spw::tool {

// Rates and means are of the time since the sample before.
struct Sample {
  double seconds = 0;  // since the start
  uint64_t memory_bytes = 0;
  double misses_per_s = 0, hits_per_s = 0, read_bytes_per_s = 0, write_bytes_per_s = 0;
  double waiting_threads = 0, running_threads = 0;
  uint64_t processes = 0;
};

// A large piece of managed memory, or a place in the code, and how many misses were seen to be of it, about.
struct Missed {
  std::string name;
  uint64_t bytes = 0;
  double misses = 0;
  bool is_file = false;
};
struct MissedAt {
  std::string function, source, library;
  double misses = 0;
};

struct SeenProcess {
  uint64_t process = 0;
  std::string program;
  std::string engine, store;
  uint64_t block_bytes = 0, frames = 0, memory_cap_bytes = 0;
  uint64_t peak_bytes = 0;
  double seconds = 0;
  bool has_ended = false;
  telemetry::Totals totals{};
  telemetry::Latencies latencies;
};

class Recorder {
 public:
  // kPlaces: also what the misses are of, which is read ten times a second at first. Without, once a second is enough.
  enum class Detail { kCounters, kPlaces };
  // `run`: what the run's processes have as kTreeVariable in their environment; `tree`: its ledger.
  Recorder(std::string run, process::TreeCap* tree, Detail detail);
  ~Recorder();

  static constexpr size_t kSamplesMax = 2000;
  static constexpr size_t kPlacesMax = 4096;

  // Seconds until the next look is due.
  double look();
  // As monitoring systems are told; it reads all processes again.
  RunNow now(uint64_t cap_bytes);
  const std::vector<Sample>& samples() const { return samples_; }
  std::vector<SeenProcess> processes() const;
  // The most misses first.
  std::vector<Missed> allocations() const;
  std::vector<MissedAt> functions(size_t most);
  double seconds() const;

 private:
  struct Watched;
  void find_processes(uint64_t now_ns);
  void read(Watched& watched);
  void note_misses(Watched& watched);
  uint64_t memory_bytes() const;
  void add_sample(uint64_t now_ns);

  const std::string run_;
  process::TreeCap* const tree_;
  const Detail detail_;
  const uint64_t started_ns_;
  uint64_t looked_ns_ = 0, found_ns_ = 0;
  double interval_s_;
  std::map<uint64_t, std::unique_ptr<Watched>> watched_;
  // Those that were there before the run and still are. (A new one may begin what it is of by its next exec().)
  std::set<uint64_t> others_;
  CodeNames names_;
  telemetry::Totals before_{};
  uint64_t processor_before_ns_ = 0;
  std::vector<Sample> samples_;
};

}  // namespace spw::tool
