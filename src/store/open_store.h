// Stores by name:
//
//     memory:SIZE    in memory ("memory:512M")
//     file:PATH      a whole existing file or block device; its contents are read and overwritten
//     spill:DIR      a spill file in a directory; "DIR" alone, when it is a directory, means the same
//
// Threads: any.
#pragma once

#include <memory>
#include <string>

#include "store/engine/engine.h"
#include "store/fault_plan.h"
#include "store/store.h"

namespace spw::store {

struct OpenOptions {
  EngineKind engine = EngineKind::kAuto;
  bool direct = true;
  FaultPlan* faults = nullptr;  // outlives the store
};

// EINVAL for a name that names nothing; else what opening it said.
Result<std::unique_ptr<Store>> open_store(const std::string& uri, const OpenOptions& options = {});

}  // namespace spw::store
