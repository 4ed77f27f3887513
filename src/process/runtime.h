// The runtime: builds the concrete parts in order, connects them, and
// takes them down. The only place that knows them all.
//
// Construction order: spill store -> regions -> managed space, cache
// and engine, of either kind -> heap -> C entry points.
// Threads: create() once; the accessors any. Lifetime: never destroyed
// (threads may still run at exit); finish() is called as the process ends.
// Fork: before_fork() and lock_for_fork() in the parent, forked() in the child. What the child needs beside its
// memory it has made anew (make_anew()) when it first needs it; or its managed memory is out of reach.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "access/engine.h"
#include "access/mapped/engine.h"
#include "base/atomic.h"
#include "base/status.h"
#include "cache/cache.h"
#include "files/descriptors.h"
#include "heap/heap.h"
#include "nodes/node_exchange.h"
#include "page_cache/mappings.h"
#include "platform/memory.h"
#include "process/closing.h"
#include "process/curve_observer.h"
#include "process/engine_choice.h"
#include "process/fault_handler.h"
#include "process/memory_adapter.h"
#include "process/memory_limit.h"
#include "process/memory_plan.h"
#include "process/native_memory.h"
#include "process/options.h"
#include "process/page_cache_share.h"
#include "process/pinned_ranges.h"
#include "process/spill_stores.h"
#include "process/use_recorder.h"
#include "region/region_map.h"
#include "store/store.h"
#include "telemetry/call_sites.h"
#include "telemetry/live_page.h"
#include "telemetry/report.h"

namespace spw::process {

class Runtime {
 public:
  // `engine`: kTranslated or kMapped. Errors: EINVAL and friends with one line for the user.
  static Result<std::unique_ptr<Runtime>> create(const Options& options, EngineKind engine,
                                                 const LoadedCode& code);

  // What is buffered and what is mapped reaches its files. False: not all of it did, which has been said.
  bool write_files_at_end();
  // Likewise, and the report is written if one was asked for.
  void finish();
  void lock_for_fork();
  void unlock_after_fork();
  access::Engine::InChild forked();
  // In a child that goes on. Others may be waiting in the engine meanwhile, and hold the region map's lock.
  Status make_anew();

  access::Engine& engine() { return *engine_; }
  // Whether managed memory is at its own addresses, and whether system calls may use it there.
  bool is_in_place() const { return kind_ == EngineKind::kMapped; }
  region::RegionMap& regions() { return *regions_; }
  const region::RegionMap& regions() const { return *regions_; }
  heap::Heap& heap() { return *heap_; }
  PinnedRanges& pinned() { return *pinned_; }
  const cache::SharedCache& cache() const { return *cache_; }
  files::Descriptors& descriptors() { return *descriptors_; }
  // Through which blocks of other memory nodes are asked for, from the first call on; nullptr: there is one node, or
  // the threads that it needs cannot be had, or this is a forked child, which has none of them.
  nodes::NodeExchange* nodes();
  bool manages_other_reads() const { return manages_other_reads_; }
  // Serves mappings of files that are only read; nullptr: the cache does, or this is a forked child.
  page_cache::Mappings* mapped_reads() { return is_child_ ? nullptr : mapped_reads_.get(); }
  uint64_t block_bytes() const { return options_.block_bytes; }

  MemoryLimit& memory_limit() { return *limit_; }
  telemetry::Facts facts() const;
  // Of the whole run, at its end.
  telemetry::Facts final_facts(const telemetry::Totals& totals) const;
  uint64_t memory_for(uint64_t more_frames) const;
  // See install_fault_handler.
  bool admit_fault(const Fault& fault);

 private:
  Runtime(const Options& options, EngineKind engine, const LoadedCode& code)
      : options_(options), kind_(engine), code_(code) {}
  Status build();
  Result<MemoryPlan> plan() const;
  Status build_over_regions();
  bool tells_at_end() const;
  void tell_at_end(const telemetry::Totals& totals);
  std::vector<telemetry::CurvePoint> curve(const telemetry::Totals& totals) const;
  bool shares_with_compressed() const;
  void share_with_compressed();
  Status open_observer(cache::Options& for_cache);
  Status build_translated(const cache::Options& for_cache, const MemoryPlan& plan);
  Status limit_memory();
  void open_mapped_reads();
  Status build_mapped(const cache::Options& for_cache, const MemoryPlan& plan);
  Result<access::MappedOptions> mapped_options(unsigned block_shift, const MemoryPlan& plan);

  const Options options_;
  const EngineKind kind_;
  const LoadedCode code_;
  uint64_t started_ns_ = 0;
  uint64_t cpu_started_ns_ = 0;
  platform::Mapping managed_space_;
  SpillStores spills_{options_, kind_};
  std::unique_ptr<UseRecorder> recorder_;
  std::unique_ptr<CurveObserver> curve_;
  std::unique_ptr<store::Store> spill_;
  std::unique_ptr<region::RegionMap> regions_;
  std::unique_ptr<cache::SharedCache> cache_;
  std::mutex nodes_mutex_;
  bool nodes_tried_ = false;
  std::unique_ptr<nodes::NodeExchange> nodes_;
  std::unique_ptr<access::Engine> engine_;
  std::unique_ptr<PinnedRanges> pinned_;
  std::unique_ptr<heap::Heap> heap_;
  std::unique_ptr<MemoryAdapter> memory_adapter_;
  std::unique_ptr<PageCacheShare> page_cache_share_;
  std::unique_ptr<page_cache::Mappings> mapped_reads_;
  bool manages_other_reads_ = false;  // as access::Context's
  std::string mapped_reads_by_;       // for people
  std::unique_ptr<files::Descriptors> descriptors_;
  telemetry::CallSites foreign_sites_;
  std::optional<telemetry::LivePage> live_page_;
  std::unique_ptr<MemoryLimit> limit_;
  std::unique_ptr<TreeCap> tree_;  // as this process is a member of it
  std::unique_ptr<Closing> closing_;
  std::unique_ptr<CompressedShare> compressed_share_;
  std::unique_ptr<NativeMemory> native_memory_;
  platform::File report_to_;  // standard error, with --stats text: some programs close theirs before they end
  uint64_t space_bytes_ = 0;  // of addresses; those of files that are not mapped come behind
  uint64_t call_bytes_ = 0;
  // This is a forked child that has no managed memory, or one whose parts are still its parent's.
  bool is_child_ = false;
  bool files_are_lost_ = false;  // not written whole at the end
};

}  // namespace spw::process
