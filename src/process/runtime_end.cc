// What a runtime says of itself, and what it does as the process ends.
#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "access/context.h"
#include "base/in_runtime.h"
#include "platform/time.h"
#include "process/fatal.h"
#include "process/foreign_code.h"
#include "process/runtime.h"
#include "process/slow_end.h"
#include "store/compressed/object_pool.h"

namespace spw::process {

namespace {
uint64_t blocks_read(const telemetry::Totals& totals) {
  uint64_t reads = 0;
  for (const auto counter :
       {telemetry::Counter::fills, telemetry::Counter::unit_fills, telemetry::Counter::readahead_fills})
    reads += telemetry::total(totals, counter);
  return reads;
}

telemetry::PageCompression compression_of(const store::ProbedPages& probed) {
  const auto totals = probed.codec->totals();
  telemetry::PageCompression found{.tried = totals.tried, .fitted = totals.fitted};
  if (totals.fitted == 0) return found;
  const auto fitted = static_cast<double>(totals.fitted);
  found.kept_bytes = store::ObjectPool::kept_bytes_of(static_cast<double>(totals.fitted_bytes) / fitted);
  found.compress_ns = probed.codec->compress_ns();
  found.open_ns = static_cast<double>(probed.open_ns.load_relaxed()) / fitted;
  return found;
}
}  // namespace

telemetry::Facts Runtime::facts() const {
  telemetry::Facts facts;
  facts.program = program_invocation_name;
  facts.process = static_cast<uint64_t>(::getpid());
  facts.engine = engine_->name();
  facts.store = spill_->describe();
  facts.block_bytes = options_.block_bytes;
  facts.memory_cap_bytes = options_.memory_bytes;
  facts.frames = cache_->frame_count();
  facts.frames_peak = cache_->peak_frames();
  facts.watched = engine_->is_watching();
  facts.faults_by = engine_->faults_by();
  facts.system_call_faults = access::kernel_reaches() ? "served" : "brought in first";
  facts.mapped_reads = mapped_reads_by_;
  facts.misses = telemetry::summary_of(telemetry::read_miss_latencies());
  facts.metadata_bytes = cache_->metadata_bytes() + engine_->metadata_bytes() + regions_->metadata_bytes() +
                         heap_->metadata_bytes() + descriptors_->metadata_bytes();
  if (native_memory_) facts.native_peak_bytes = native_memory_->peak_bytes();
  if (auto memory = platform::process_memory()) facts.resident_peak_bytes = memory->resident_peak_bytes;
  if (const store::CompressedMemory* const compressed = spills_.compressed()) {
    facts.compressed_peak_bytes = compressed->budget.bytes_peak.load_relaxed();
    facts.compressed_share_bytes =
        compressed_share_ ? compressed_share_->bytes() : compressed->budget.bytes_max.load_relaxed();
  }
  if (const store::ProbedPages* const probed = spills_.probed()) facts.compression = compression_of(*probed);
  facts.foreign = foreign_code(foreign_sites_);
  facts.warnings = warnings();
  facts.wall_seconds = static_cast<double>(platform::monotonic_ns() - started_ns_) / 1e9;
  return facts;
}

telemetry::Facts Runtime::final_facts(const telemetry::Totals& totals) const {
  telemetry::Facts facts = this->facts();
  facts.processor_seconds = static_cast<double>(platform::process_cpu_ns() - cpu_started_ns_) / 1e9;
  if (!curve_ || options_.curve != Curve::kOn) return facts;
  facts.curve = curve(totals);
  facts.areas = curve_->areas(options_.memory_bytes, blocks_read(totals),
                              [this](uint64_t frames) { return memory_for(frames); });
  return facts;
}

std::vector<telemetry::CurvePoint> Runtime::curve(const telemetry::Totals& totals) const {
  return curve_->curve(options_.memory_bytes, blocks_read(totals),
                       [this](uint64_t frames) { return memory_for(frames); });
}

// With their tables, staging and all: the least that the plan needs.
uint64_t Runtime::memory_for(uint64_t more_frames) const {
  const uint64_t wanted = cache_->frame_count() + more_frames;
  uint64_t enough = more_frames * options_.block_bytes * 2 + kMiB, too_little = 0;
  while (enough - too_little > options_.block_bytes) {
    const uint64_t middle = too_little + (enough - too_little) / 2;
    Options planned = options_;
    planned.memory_bytes += middle;
    auto plan = plan_memory(planned, kind_);
    (plan && plan->frames >= wanted ? enough : too_little) = middle;
  }
  return enough;
}

bool Runtime::tells_at_end() const {
  return options_.quiet == Switch::kOff && options_.curve == Curve::kSample;
}

// What it did counts for the line of the run even where this process says nothing.
void Runtime::tell_at_end(const telemetry::Totals& totals) {
  const bool knows_more = curve_ && !options_.memory_is_auto && closing_->has_spilled();
  closing_->at_end(knows_more ? curve(totals) : std::vector<telemetry::CurvePoint>(),
                   options_.quiet == Switch::kOff);
}

// What failed once has been said, and waited for.
bool Runtime::write_files_at_end() {
  if (is_child_ || files_are_lost_) return !files_are_lost_;
  InRuntime guard;
  const SlowEnd slow(options_.quiet == Switch::kOff && regions_->has_files());
  // Where the kernel has the files alone, it writes them when it likes.
  Status buffered = descriptors_->finish();
  Status mapped = engine_->is_watching() ? regions_->sync_shared_files() : Status();
  if (!buffered) warn("a buffered file was not written whole: " + buffered.message());
  if (!mapped) warn("a file mapping was not written whole: " + mapped.message());
  files_are_lost_ = !buffered || !mapped;
  return !files_are_lost_;
}

void Runtime::finish() {
  if (is_child_) return;
  InRuntime guard;
  if (native_memory_) native_memory_->at_end();
  (void)write_files_at_end();
  if (recorder_)
    if (Status status = recorder_->finish(); !status) warn(status.message());
  engine_->settle_counters();
  telemetry::Totals totals = telemetry::read_totals();
  tell_at_end(totals);
  if (options_.stats.kind == StatsKind::kOff) return;
  if (options_.stats.kind == StatsKind::kText) {
    std::string text = telemetry::report_text(final_facts(totals), totals);
    ::dprintf(report_to_.is_open() ? report_to_.fd() : 2, "%s", text.c_str());
    return;
  }
  std::string name = telemetry::report_file_name(options_.stats.file, static_cast<uint64_t>(::getpid()));
  std::ofstream file(name);
  file << telemetry::report_json(final_facts(totals), totals);
  if (!file.flush()) warn("cannot write the report to " + name);
}

}  // namespace spw::process
