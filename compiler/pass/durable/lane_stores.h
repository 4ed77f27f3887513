// Masked stores, scatters and compressing stores to persistent
// memory: only the lanes that are switched on are announced.
//
// A compressing store writes a run of bytes, whose length is counted. The others, where a lane may lie in the range,
// are done lane by lane, each announced and then stored: one announcement never waits for a store while the next is
// made (abi/durable.h, "Order"). Where none does, the whole store stays as it was.
#pragma once

#include "llvm/IR/IntrinsicInst.h"
#include "pass/durable/store_marks.h"

namespace spw::pass {

// Whether mark_lane_store() knows `intrinsic`.
bool is_lane_store(const llvm::IntrinsicInst& intrinsic);

// The vector or scalar pointer that it stores through.
llvm::Value* address_of_lane_store(const llvm::IntrinsicInst& intrinsic);

// Splits the block, unless it is a compressing store.
void mark_lane_store(llvm::IntrinsicInst& intrinsic, StoreMarks& marks);

}  // namespace spw::pass
