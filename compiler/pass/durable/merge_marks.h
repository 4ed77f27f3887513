// One mark for stores side by side: of marks that follow each other in a block, the first stands for all whose bytes,
// together with its own, are one gapless piece at constant distances from one pointer.
//
// Nothing may lie between them that lets another thread or the end of a section in: a call, an atomic or volatile
// access, a fence; nor a mark of anything else (abi/durable.h, "Order").
#pragma once

#include "llvm/IR/Function.h"

namespace spw::pass {

void merge_store_marks(llvm::Function& function);

}  // namespace spw::pass
