#include "process/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>

#include "abi/abi.h"
#include "access/context.h"
#include "access/mapped/engine.h"
#include "access/translate/engine.h"
#include "access/version_switch.h"
#include "base/check.h"
#include "base/in_runtime.h"
#include "cache/page_sets/page_set_table.h"
#include "libc/system_calls/dispatch.h"
#include "platform/machine.h"
#include "platform/numa.h"
#include "platform/own_descriptors.h"
#include "platform/time.h"
#include "process/engine_choice.h"
#include "process/extent_choice.h"
#include "process/fatal.h"
#include "process/forked_child.h"
#include "process/policy_library.h"
#include "process/refused_child.h"
#include "process/userfault_check.h"
#include "store/engine/engine.h"

namespace spw::process {

namespace {

// A test hook, documented in docs/OPTIONS.md beside the options: for how long a full store is waited for.
constexpr const char* kFrameWaitVariable = "SPILLWAY_TEST_FRAME_WAIT_MS";
// From this many processors on, dedicated servers pay for themselves.
constexpr unsigned kDedicatedCpusMin = 16;
// Of managed space, for files that are not mapped, where the mapped engine has them.
constexpr uint64_t kCallBytes = SPW_MANAGED_BYTES / 2;

// EINVAL is the user's to mend: a cap too small for the threads. ECHILD is access::touched_in_child().
[[noreturn]] void end_on_error(const Status& status) {
  if (status.error() == ECHILD) refuse_child(status);
  fatal(status.error() == EINVAL ? kExitUsage : kExitFailure, status.message());
}
void end_on_io_error(void*, const Status& status) {
  // Of a file that is mapped or buffered, too, for which there is no other place.
  if (status.error() == ENOSPC || status.error() == EDQUOT)
    fatal(kExitFailure, status.message() +
                            ", and nobody made room in time; make some there, or, for a spill file, name a "
                            "larger place with --store");
  fatal(kExitFailure, status.message());
}

// Partitions large enough that many threads' pins fit into each (access/translate/pin_budget.h).
unsigned partition_count(uint32_t frames, unsigned cpus) {
  constexpr uint32_t kFramesPerPartitionMin = 4096;
  constexpr unsigned kPartitionsPerCpu = 4;
  return std::bit_floor(std::clamp(frames / kFramesPerPartitionMin, 1u, kPartitionsPerCpu * cpus));
}

// As of the first call: a thread that was bound since sees less.
unsigned machine_nodes() {
  static const auto nodes = static_cast<unsigned>(platform::nodes_with_processors().size());
  return nodes;
}

files::FlushOptions flush_options(const Options& options) {
  using By = files::FlushOptions::By;
  constexpr uint64_t kSecondNs = 1'000'000'000;
  return {static_cast<By>(options.flush), static_cast<unsigned>(options.dirty_percent),  // in the same order
          options.flush_after_s * kSecondNs};
}

// Beside compressed pages a few frames may be all there are, and what misses is back in microseconds: so many last
// until the page cleaner looks again.
constexpr uint32_t kAheadFramesMin = 128;

cache::PageCleaner::Options room_options(const Options& options) {
  return {static_cast<unsigned>(options.evictors), static_cast<unsigned>(options.low_percent),
          static_cast<unsigned>(options.high_percent)};
}

cache::Options cache_options(const Options& options, uint32_t frames) {
  unsigned cpus = platform::cpu_count();
  bool dedicated = options.delegation == DelegationChoice::kDedicated ||
                   (options.delegation == DelegationChoice::kAuto && cpus >= kDedicatedCpusMin &&
                    !cache::set_rule_named(options.policy));  // page sets have no servers
  cache::Options result;
  result.frame_count = frames;
  result.partitions = partition_count(frames, cpus);
  result.block_shift = static_cast<unsigned>(std::countr_zero(options.block_bytes));
  result.delegation = dedicated ? cache::Delegation::kDedicated : cache::Delegation::kCombining;
  result.servers = options.servers != 0 ? static_cast<unsigned>(options.servers) : std::max(cpus / 8, 1u);
  result.nodes = machine_nodes();
  if (options.nodes != 0 && options.nodes != result.nodes) result.nodes = 1;  // simulated
  result.policy = options.policy;
  result.clients_pin = options.levels != Levels::kOwner;
  result.tunes_fills = options.block_is_auto;
  result.readahead_blocks_max = static_cast<unsigned>(options.readahead_blocks);
  if (const char* wait_ms = ::secure_getenv(kFrameWaitVariable))
    result.frame_wait_ns_max = std::strtoull(wait_ms, nullptr, 10) * 1'000'000;
  return result;
}

}  // namespace

Result<std::unique_ptr<Runtime>> Runtime::create(const Options& options, EngineKind engine,
                                                 const LoadedCode& code) {
  platform::keep_own_descriptors();
  std::unique_ptr<Runtime> runtime(new Runtime(options, engine, code));
  Status status = runtime->build();
  if (!status) return status;
  return runtime;
}

Status Runtime::build() {
  if (options_.stats.kind == StatsKind::kText) report_to_ = platform::File(::fcntl(2, F_DUPFD_CLOEXEC, 3));
  if (Result<MemoryPlan> possible = plan(); !possible) return possible.status();
  auto spill = spills_.open_first();
  if (!spill) return spill.status();
  spill_ = std::move(*spill);
  call_bytes_ = kind_ == EngineKind::kMapped ? kCallBytes : 0;
  space_bytes_ = round_down(std::min<uint64_t>(SPW_MANAGED_BYTES - call_bytes_, spill_->size_bytes()),
                            region::kChunkBytes);
  const auto block_shift = static_cast<unsigned>(std::countr_zero(options_.block_bytes));
  auto regions = region::RegionMap::create(block_shift, space_bytes_ + call_bytes_, *spill_);
  if (!regions) return regions.status();
  regions_ = std::move(*regions);
  regions_->spilled().prepare({[this] { return spills_.open(); }, &end_on_error});
  return build_over_regions();
}

Result<MemoryPlan> Runtime::plan() const {
  Options planned = options_;
  if (options_.memory_is_auto && kind_ == EngineKind::kTranslated)
    planned.memory_bytes = options_.memory_bytes / 4 * 3;
  return plan_memory(planned, kind_);
}

// All that a forked child has to have made anew, and the heap if there is none.
Status Runtime::build_over_regions() {
  started_ns_ = platform::monotonic_ns();
  cpu_started_ns_ = platform::process_cpu_ns();
  Result<MemoryPlan> plan = this->plan();
  if (!plan) return plan.status();
  cache::Options for_cache = cache_options(options_, plan->frames);
  if (shares_with_compressed()) for_cache.ahead_frames_min = kAheadFramesMin;
  if (is_file_name(options_.policy)) {
    auto factory = load_policy(options_.policy);
    if (!factory) return factory.status();
    for_cache.make_policy = std::move(*factory);
  }
  if (Status status = open_observer(for_cache); !status) return status;
  Status status =
      kind_ == EngineKind::kMapped ? build_mapped(for_cache, *plan) : build_translated(for_cache, *plan);
  if (!status) return status;
  regions_->attach(engine_.get());
  const uint32_t limit_min =
      options_.memory_is_auto ? cache_->frame_count() / AdaptiveLimit::kLimitShareMin : UINT32_MAX;
  pinned_ = std::make_unique<PinnedRanges>(*cache_, *engine_, for_cache.block_shift, limit_min);
  open_mapped_reads();
  if (status = limit_memory(); !status) return status;

  if (!heap_) {
    auto heap = heap::Heap::create(*regions_, space_bytes_, call_bytes_);
    if (!heap) return heap.status();
    heap_ = std::move(*heap);
  }
  descriptors_ = std::make_unique<files::Descriptors>(
      files::FileParts{*cache_, *engine_, *regions_, heap_->mappings(), flush_options(options_),
                       plan->index_bytes, heap_->call_mappings(), options_.buffer_after_calls,
                       options_.buffer,
                       // The mapped engine has a page cleaner of its own.
                       kind_ == EngineKind::kTranslated ? room_options(options_)
                                                        : cache::PageCleaner::Options{.evictors = 0}},
      &warn);
  // Without it the program runs as well; only `spillway top` does not find it.
  if (auto page = telemetry::LivePage::publish(facts(), started_ns_)) live_page_ = std::move(*page);
  return {};
}

Status Runtime::limit_memory() {
  const bool can_change = kind_ == EngineKind::kMapped && !options_.memory_is_auto;
  const uint64_t chosen_bytes =
      limit_ ? limit_->chosen_bytes() : options_.memory_bytes;  // a child's parent had one
  static_cast<void>(limit_.release());
  limit_ = std::make_unique<MemoryLimit>(
      options_, MemoryLimit::Parts{*cache_, *engine_, *pinned_, page_cache_share_.get(), can_change});
  if (chosen_bytes != options_.memory_bytes) (void)limit_->inherit(chosen_bytes);
  static_cast<void>(closing_.release());
  if (options_.memory_is_auto) {
    closing_ = std::make_unique<Closing>(nullptr, options_.memory_bytes, options_.block_bytes);
    return {};
  }
  if (can_change) {
    auto joined = tree_ ? tree_->join_as_child() : TreeCap::join(options_.memory_bytes);
    tree_.reset();
    if (joined)
      tree_ = std::make_unique<TreeCap>(std::move(*joined));
    else
      warn("this process has a cap of its own: " + joined.status().message());
  }
  closing_ = std::make_unique<Closing>(tree_.get(), options_.memory_bytes, options_.block_bytes);
  share_with_compressed();
  const NativeMemory::Parts parts{*cache_,
                                  *engine_,
                                  *regions_,
                                  *limit_,
                                  options_.memory_bytes,
                                  options_.block_bytes,
                                  options_.quota_bytes,
                                  can_change,
                                  tree_.get(),
                                  page_cache_share_.get(),
                                  compressed_share_.get()};
  native_memory_ =
      std::make_unique<NativeMemory>(parts, NativeMemory::Outside::of_process(parts, is_child_, *closing_));
  return native_memory_->start();
}

// The library may be missing.
bool Runtime::shares_with_compressed() const {
  return spills_.compressed() != nullptr && compressed_share_changes(options_, kind_);
}

// Without a curve nothing says how much would be good.
void Runtime::share_with_compressed() {
  static_cast<void>(compressed_share_.release());
  if (spills_.compressed()) spills_.compressed()->budget.others.store_release(nullptr);
  if (!curve_ || !shares_with_compressed()) return;
  compressed_share_ = std::make_unique<CompressedShare>(
      CompressedShare::Parts{*spills_.compressed(), *curve_, *cache_, options_.block_bytes, is_child_});
}

// A trace is of one process.
Status Runtime::open_observer(cache::Options& for_cache) {
  if (!options_.trace_file.empty() && !is_child_) {
    auto recorder = UseRecorder::create(options_.trace_file);
    if (!recorder) return recorder.status();
    recorder_ = std::move(*recorder);
    for_cache.observer = for_cache.use_observer = recorder_.get();
  } else if (options_.curve == Curve::kOn || tells_at_end() || compressed_share_changes(options_, kind_)) {
    curve_ = std::make_unique<CurveObserver>(options_.block_bytes, options_.curve == Curve::kOn
                                                                       ? CurveObserver::Detail::kPlaces
                                                                       : CurveObserver::Detail::kCurve);
    for_cache.observer = curve_.get();
  }
  return {};
}

Status Runtime::build_translated(const cache::Options& for_cache, const MemoryPlan& plan) {
  Result<platform::Mapping> space = platform::reserve_range(SPW_MANAGED_BASE, SPW_MANAGED_BYTES);
  if (!space) return space.status();
  managed_space_ = std::move(*space);
  cache::Options with_view = for_cache;
  with_view.no_frame = &access::TranslatedEngine::give_up_view;
  with_view.staging_runs = plan.staging_runs;
  auto cache = cache::SharedCache::create(with_view, *regions_, &end_on_io_error, nullptr);
  if (!cache) return cache.status();
  cache_ = std::move(*cache);
  if (Status status = access::VersionSwitch::make_writable(); !status) return status;
  access::VersionSwitch::set(options_.levels != Levels::kView);
  access::EngineOptions for_engine;
  if (options_.levels == Levels::kView) for_engine.blocks = regions_.get();
  for_engine.view_ends = &access::elsewhere_from_now_on;
  for_engine.block_shift = for_cache.block_shift;
  // A thread that only starts and joins the others counts too.
  for_engine.expected_threads = platform::cpu_count() + 1;
  for_engine.frames = cache_->frames_file();
  for_engine.satc = options_.levels <= Levels::kAll       ? access::SatcLevels::kAll
                    : options_.levels == Levels::kPrivate ? access::SatcLevels::kPrivate
                    : options_.levels == Levels::kDirect  ? access::SatcLevels::kDirect
                                                          : access::SatcLevels::kNone;
  engine_ = std::make_unique<access::TranslatedEngine>(*cache_, for_engine, &end_on_error);
  return {};
}

Result<access::MappedOptions> Runtime::mapped_options(unsigned block_shift, const MemoryPlan& plan) {
  access::MappedOptions for_engine;
  for_engine.block_shift = block_shift;
  for_engine.space_bytes = space_bytes_;
  const auto userfault = open_userfault();
  for_engine.has_userfault = static_cast<bool>(userfault);
  if (!userfault && options_.faults == Faults::kThreads)
    return Status::sentence(userfault.status().error(), "--faults=threads: " + userfault.status().message() +
                                                            "; leave it out, or " + kAllowUserfault);
  for_engine.scope = wanted_fault_scope();
  for_engine.faults_by = options_.faults == Faults::kAuto      ? access::FaultChoice::kAuto
                         : options_.faults == Faults::kSignals ? access::FaultChoice::kSignals
                                                               : access::FaultChoice::kEvents;
  for_engine.stacks_are_managed = code_.has_go;
  for_engine.why_no_managed_stacks =
      std::string(
          "a program with Go's runtime has its stacks on its heap, whose faults only threads can serve; ") +
      (options_.faults == Faults::kSignals ? "leave --faults=signals out" : kAllowUserfault);
  // A child's memory faults before it has threads, and before rings of its own.
  if (is_child_) for_engine.faults_by = access::FaultChoice::kSignals;
  for_engine.watches_at_once = !is_child_ && ::secure_getenv("SPILLWAY_TEST_WATCH") != nullptr;  // tests
  for_engine.await_engine = &await_parts_of_child;
  for_engine.children_go_on = spills_.children_can_use_them();
  for_engine.kernel_reaches = &access::kernel_reaches_from_now_on;
  for_engine.threads_serve_faults = &libc::threads_serve_faults_from_now_on;
  for_engine.rings_reach_less = [] {
    warn(std::string("the program has rings for asynchronous I/O, which get EFAULT from now on for memory "
                     "that is on the "
                     "store, since userfaultfd is not allowed here; ") +
         kAllowUserfault);
  };
  for_engine.serves_a_fault = [] { libc::dispatch_if_wanted(true); };
  for_engine.staging_runs_max = plan.staging_runs;
  for_engine.faults = {static_cast<unsigned>(options_.pollers), static_cast<unsigned>(options_.fillers)};
  for_engine.room = room_options(options_);
  // A page that is compressed is protected first, which interrupts the processors that the program runs on. Where all
  // blocks are at their own addresses that costs more than who evicts on another processor saves.
  if (shares_with_compressed() && !code_.is_recompiled()) for_engine.room.evictors = 0;
  for_engine.fatal = &end_on_error;
  return for_engine;
}

Status Runtime::build_mapped(const cache::Options& for_cache, const MemoryPlan& plan) {
  auto for_engine = mapped_options(for_cache.block_shift, plan);
  if (!for_engine) return for_engine.status();
  if (is_child_) {
    auto& forked = static_cast<access::MappedEngine&>(*engine_);
    if (Status status = access::MappedEngine::make_anew(forked, *for_engine); !status) return status;
  } else {
    auto engine = access::MappedEngine::create(*for_engine);
    if (!engine) return engine.status();
    engine_ = std::move(*engine);
  }
  auto& mapped = static_cast<access::MappedEngine&>(*engine_);
  auto frames = mapped.make_frames(for_cache.frame_count);
  if (!frames) return frames.status();
  auto cache =
      cache::SharedCache::create(for_cache, *regions_, &end_on_io_error, nullptr, std::move(*frames));
  if (!cache) return cache.status();
  if (!is_child_ && options_.extents == ExtentUse::kAuto)
    cache = add_extents(std::move(*cache), *regions_, mapped, for_cache, &end_on_io_error);
  if (!cache) return cache.status();
  cache_ = std::move(*cache);
  if (Status status = mapped.start(*cache_, *regions_); !status) return status;
  if (!options_.memory_is_auto) return {};
  // It begins with what a fixed cap would be.
  cache_->set_frame_limit(plan.frames / 4 * 3);
  memory_adapter_ = std::make_unique<MemoryAdapter>(*cache_, *engine_, options_.block_bytes);
  return memory_adapter_->start();
}

// Nobody is worse off where it cannot be: the cache serves those mappings, too.
void Runtime::open_mapped_reads() {
  if (kind_ != EngineKind::kMapped) {
    manages_other_reads_ = true;
    return;
  }
  manages_other_reads_ = options_.mapped_reads == MappedReads::kCache ||
                         (options_.mapped_reads == MappedReads::kAuto && code_.is_recompiled());
  if (options_.memory_is_auto) {
    mapped_reads_by_ = "cache (the cap follows the machine)";
    return;
  }
  page_cache_share_ =
      std::make_unique<PageCacheShare>(*cache_, *engine_, *regions_, options_.block_bytes,
                                       [this](uint32_t frames) { return pinned_->change_limit(frames); });
  const auto lost = [](std::string_view why) {
    warn("a mapped file is not kept within the cap any more: " + std::string(why));
  };
  auto mappings = page_cache::Mappings::create(
      [this](const page_cache::Use& use) { return page_cache_share_->limit_pages(use); }, lost);
  mapped_reads_by_ = manages_other_reads_ ? "cache"
                     : mappings           ? "kernel"
                                          : "cache (" + mappings.status().message() + ")";
  if (mappings) mapped_reads_ = std::move(*mappings);
}

nodes::NodeExchange* Runtime::nodes() {
  const unsigned there = machine_nodes();
  const auto wanted = options_.nodes == 0 ? there : static_cast<unsigned>(options_.nodes);
  if (wanted < 2 || is_child_) return nullptr;
  std::lock_guard lock(nodes_mutex_);
  if (nodes_tried_) return nodes_.get();
  nodes_tried_ = true;
  nodes::NodeExchange::Layout layout;
  layout.nodes = wanted;
  layout.is_simulated = wanted != there;
  layout.workers_a_node = layout.is_simulated ? 1 : std::max(platform::cpu_count() / there, 1u);
  const auto shift = static_cast<unsigned>(std::countr_zero(options_.block_bytes));
  if (auto started = nodes::NodeExchange::start(*cache_, shift, layout)) nodes_ = std::move(*started);
  return nodes_.get();
}

bool Runtime::admit_fault(const Fault& fault) {
  const telemetry::FaultPlace place(fault.instruction);
  if (fault.is_missing) return engine_->bring_in_fault(fault.address, fault.is_store, fault.is_own);
  if (fault.is_fetch && !engine_->may_execute(fault.address)) return false;
  if (engine_->admit_to_view(fault.address, fault.is_store)) return true;
  if (!engine_->admit_fault(fault.address, fault.is_store, fault.is_own)) return false;
  if (kind_ == EngineKind::kTranslated) foreign_sites_.note(fault.instruction);
  return true;
}

void Runtime::lock_for_fork() {
  if (!is_child_ && !engine_->survives_forks() && options_.on_refused_child == OnRefusedChild::kEnd)
    let_children_end_the_run();
  engine_->before_fork();
  note_fork();
  // What is mapped by both sides they read from the file.
  if (!is_child_ && engine_->is_watching())
    if (Status status = regions_->flush_shared_files(); !status)
      warn("a file mapping was not written: " + status.message());
  heap_->lock_for_fork();
  hold_children();  // who waits for them may have had the heap's locks
  engine_->lock_for_fork();
  regions_->lock_layers_for_fork(engine_->survives_forks());
}

void Runtime::unlock_after_fork() {
  engine_->unlock_after_fork();
  heap_->unlock_after_fork();
}

access::Engine::InChild Runtime::forked() {
  is_child_ = true;
  if (tree_) tree_->forked();
  telemetry::forget_placed_counters();
  telemetry::place_areas(nullptr);
  const auto how = engine_->forked();
  if (how == access::Engine::InChild::kRefused)
    heap_->unlock_after_fork();
  else
    heap_->in_child();
  return how;
}

// What was its parent's is left as it is: threads that nobody can end, locks that nobody gives back.
Status Runtime::make_anew() {
  for (void* left :
       {static_cast<void*>(cache_.release()), static_cast<void*>(nodes_.release()),
        static_cast<void*>(pinned_.release()), static_cast<void*>(memory_adapter_.release()),
        static_cast<void*>(native_memory_.release()), static_cast<void*>(page_cache_share_.release()),
        static_cast<void*>(mapped_reads_.release()), static_cast<void*>(descriptors_.release()),
        static_cast<void*>(recorder_.release()), static_cast<void*>(curve_.release())})
    static_cast<void>(left);
  if (live_page_) new std::optional(std::move(live_page_));
  new (&nodes_mutex_) std::mutex;
  nodes_tried_ = false;
  store::start_engine_workers();
  if (Status status = build_over_regions(); !status) return status;
  is_child_ = false;
  access::MappedEngine::is_made_anew();
  return {};
}

}  // namespace spw::process
