// The processes of all runs: who started whom, what each holds of its run's cap and how much it misses.
//
// A run is what shares a cap (process/tree_cap.h): all processes that have its ledger open. Where there is no ledger a
// process is a run by itself.
// Limits: processes whose descriptors this user may see; this process is left out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "process/tree_cap.h"
#include "telemetry/live_page.h"

namespace spw::tool::top {

struct Process {
  uint64_t id = 0, parent = 0;
  uint64_t started = 0;  // since the machine's start, in the kernel's ticks
  std::string program;   // its words; printable
  uint64_t resident_bytes = 0;
  // What counts against the cap: as the ledger has it; of a process alone, which need not tell, as its page has it, or
  // the kernel.
  uint64_t held_bytes = 0;
  std::optional<process::TreeShare> share;
  bool has_page = false;           // can be watched
  std::optional<double> misses_s;  // nothing where it cannot be, and at the first look
  // Of its run's cap; nothing where that is not known.
  std::optional<double> cap_share() const;
};

struct Run {
  uint64_t id = 0;
  std::vector<Process> processes;
  uint64_t cap_bytes = 0;  // 0: not known
  uint64_t held_bytes() const;
  double misses_s() const;
  // The process to show first: of those with a page the one that was started first.
  const Process* first() const;
};

class Processes {
 public:
  // Runs with a process that can be watched, the oldest first.
  std::vector<Run> look();

 private:
  struct Watched {
    telemetry::LivePage page;
    uint64_t misses = 0, at_ns = 0;
  };
  void look_at_page(Process& process, std::map<std::pair<uint64_t, uint64_t>, Watched>& kept);
  std::map<std::pair<uint64_t, uint64_t>, Watched> watched_;  // by number and start
};

// Whether the process that was started then still runs: is neither another one of the same number nor a zombie.
bool is_running(uint64_t process, uint64_t started);
// 0: it does not run.
uint64_t start_of(uint64_t process);

// The run that the process is in; nullptr: none.
const Run* run_of(const std::vector<Run>& runs, uint64_t process);

enum class ProcessSort : uint8_t { kMisses, kResident, kShare, kNumber };

struct TreeRow {
  size_t process;      // its place among those given
  std::string branch;  // what is drawn before its name: "│  └─ "
};
// Each below its parent, children in the order of `sort`. Those whose parents are not among them are roots.
std::vector<TreeRow> tree_rows(const std::vector<Process>& processes, ProcessSort sort, bool is_utf8);

}  // namespace spw::tool::top
