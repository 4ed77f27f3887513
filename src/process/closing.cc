#include "process/closing.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "platform/time.h"
#include "process/fatal.h"
#include "telemetry/counters.h"

namespace spw::process {

namespace {

using telemetry::RunSummary;
using telemetry::RunTotals;

struct Identity {
  dev_t device = 0;
  ino_t file = 0;
  bool is_open = false;
};
constinit Identity g_standard_error;
constinit uint64_t g_started_ns = 0;
constinit pid_t g_began_in = 0;
constinit TreeCap* g_tree = nullptr;  // of the root; lives as long as the process
constinit Atomic<bool> g_has_told{false};

Identity standard_error() {
  struct stat about;
  if (::fstat(STDERR_FILENO, &about) != 0) return {};
  return {about.st_dev, about.st_ino, true};
}

// A forked child is none, even without a tree.
bool is_root() { return ::getpid() == g_began_in && TreeCap::is_root(); }

void say(const RunSummary& run) {
  if (has_standard_error()) tell(telemetry::closing_line(run));
}

RunSummary summary_of(const TreeCap::Account& account, uint64_t cap_bytes) {
  RunSummary run;
  run.totals = account.totals;
  run.wall_seconds = static_cast<double>(platform::monotonic_ns() - g_started_ns) / 1e9;
  run.peak_bytes = account.resident_bytes;
  run.cap_bytes = cap_bytes;
  run.needs_bytes = account.needs_bytes;
  run.machine_bytes = telemetry::machine_bytes();
  return run;
}

}  // namespace

Closing::Closing(TreeCap* tree, uint64_t cap_bytes, uint64_t block_bytes)
    : tree_(tree),
      cap_bytes_(cap_bytes),
      block_bytes_(block_bytes),
      processor_started_ns_(platform::process_cpu_ns()) {}

RunTotals Closing::totals() const {
  return telemetry::run_totals(telemetry::read_totals(), block_bytes_,
                               platform::process_cpu_ns() - processor_started_ns_);
}

bool Closing::has_spilled() const { return telemetry::has_spilled(totals()); }

void Closing::seen(uint64_t resident_bytes, uint64_t needs_bytes) {
  resident_most_.store_relaxed(std::max(resident_most_.load_relaxed(), resident_bytes));
  needs_most_.store_relaxed(std::max(needs_most_.load_relaxed(), needs_bytes));
  if (tree_ != nullptr) tree_->note({totals(), resident_bytes, needs_bytes});
}

void Closing::at_end(const std::vector<telemetry::CurvePoint>& curve, bool speaks) {
  TreeCap::Account account{totals(), resident_most_.load_relaxed(), needs_most_.load_relaxed()};
  const RunTotals own = account.totals;
  if (tree_ != nullptr) {
    tree_->note({own, 0, 0});
    account = tree_->account();
  }
  if (!speaks || !is_root() || !telemetry::has_spilled(account.totals)) return;
  RunSummary run = summary_of(account, cap_bytes_);
  if (telemetry::is_nearly_all(own.read_bytes, account.totals.read_bytes))
    run.advice = telemetry::advice_from(curve, telemetry::waiting_share(run.totals, run.wall_seconds),
                                        telemetry::memory_to_advise(run.machine_bytes));
  say(run);
}

bool has_standard_error() {
  const Identity now = standard_error();
  return now.is_open && now.device == g_standard_error.device && now.file == g_standard_error.file;
}

void begin_closing() {
  g_standard_error = standard_error();
  g_started_ns = platform::monotonic_ns();
  g_began_in = ::getpid();
  if (!TreeCap::is_root()) return;
  if (auto tree = TreeCap::look_on()) g_tree = new TreeCap(std::move(*tree));
}

// The tree is at hand since the start, since _exit() may be called where nothing else may be.
void tell_of_others() {
  if (g_tree == nullptr || !is_root()) return;
  const TreeCap::Account account = g_tree->account();
  if (!telemetry::has_spilled(account.totals) || g_has_told.exchange_acquire(true)) return;
  say(summary_of(account, g_tree->cap_bytes()));
}

}  // namespace spw::process
