// The stores that a run spills to, as the options have them: one at its start, and others as forks ask for them
// (region/spill_layers.h). Around each stand what sees to its contents:
//
//     --compress    compressed memory, which all of them share; or, without it and with --curve on, a look at some pages
//     --checksums   or --encrypt
//     --store       the device
//
// Threads: one at a time. Lifetime: longer than that of the stores.
#pragma once

#include <memory>

#include "base/status.h"
#include "process/options.h"
#include "store/compressed_store.h"
#include "store/compression_probe.h"
#include "store/fault_plan.h"
#include "store/store.h"

namespace spw::process {

class SpillStores {
 public:
  // The options outlive it.
  SpillStores(const Options& options, EngineKind engine) : options_(options), engine_(engine) {}

  // Of a place that was looked at; a drawback is warned of. Errors: EINVAL with a line for the user.
  Result<std::unique_ptr<store::Store>> open_first();
  // A directory's is another one at each call.
  Result<std::unique_ptr<store::Store>> open();
  // Whether a forked child can go on with its parent's.
  bool children_can_use_them() const;
  // nullptr: nothing is compressed.
  store::CompressedMemory* compressed() const { return compressed_.get(); }
  // What compressing would come to; nullptr: nobody looks.
  const store::ProbedPages* probed() const { return probed_.get(); }

 private:
  Status make_compressed_memory();
  void make_probe();

  const Options& options_;
  const EngineKind engine_;
  std::unique_ptr<store::FaultPlan> faults_;
  std::unique_ptr<store::CompressedMemory> compressed_;
  std::unique_ptr<store::ProbedPages> probed_;
};

}  // namespace spw::process
