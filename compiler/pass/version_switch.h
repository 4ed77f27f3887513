// Reads the switch that tells which version of a function is to run (abi/abi.h, "Versions"), and the weights of branches on it.
#pragma once

#include "llvm/IR/IRBuilder.h"

namespace spw::pass {

class VersionSwitch {
 public:
  explicit VersionSwitch(llvm::LLVMContext& context);

  // Whether the instrumented version is to run now: an i1, read anew each time.
  llvm::Value* is_set(llvm::IRBuilder<>& builder) const;

  // For a branch whose first successor is hardly ever taken.
  llvm::MDNode* unlikely() const { return unlikely_; }
  // For one whose first successor must not look too cold: where blocks are 2^13 times colder than the function's entry, the
  // register allocator no longer knows loops from what is colder still, and spills in them.
  llvm::MDNode* rather_unlikely() const { return rather_unlikely_; }

 private:
  llvm::MDNode* unlikely_;
  llvm::MDNode* rather_unlikely_;
};

// Says of a load of the runtime's tables that it reads nothing the program writes, and that sanitizers leave it alone.
void mark_table_load(llvm::LoadInst& load);

}  // namespace spw::pass
