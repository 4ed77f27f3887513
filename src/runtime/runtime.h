// The runtime: builds the concrete parts in order, connects them, and takes them down. The only place that knows them all.
//
// Construction order: managed space reserved -> spill store -> regions -> cache -> translated engine -> heap -> C entry points.
// Threads: create() once; the accessors any. Lifetime: never destroyed (threads may still run at exit); finish() is called
// as the process ends.
// Fork: forked() in the child; from then on managed memory is out of reach there.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "cache/cache.h"
#include "front/translate/engine.h"
#include "heap/heap.h"
#include "platform/memory.h"
#include "region/region_map.h"
#include "runtime/cache_adapter.h"
#include "runtime/options.h"
#include "store/file_store.h"
#include "telemetry/report.h"

namespace spw::runtime {

class Runtime {
 public:
  // Errors: EINVAL and friends with one line for the user.
  static Result<std::unique_ptr<Runtime>> create(const Options& options);

  // Shared file mappings reach their files; the report is written if one was asked for.
  void finish();
  void lock_for_fork();
  void unlock_after_fork();
  void forked();

  front::TranslatedEngine& engine() { return *engine_; }
  region::RegionMap& regions() { return *regions_; }
  heap::Heap& heap() { return *heap_; }
  telemetry::Facts facts() const;

 private:
  explicit Runtime(const Options& options) : options_(options) {}
  Status build();

  const Options options_;
  uint64_t started_ns_ = 0;
  platform::Mapping managed_space_;
  std::unique_ptr<store::FaultPlan> faults_;
  std::unique_ptr<store::Store> spill_;
  std::unique_ptr<region::RegionMap> regions_;
  std::unique_ptr<cache::SharedCache> cache_;
  std::unique_ptr<front::TranslatedEngine> engine_;
  std::unique_ptr<CacheAdapter> adapter_;
  std::unique_ptr<heap::Heap> heap_;
  bool forked_ = false;
};

}  // namespace spw::runtime
