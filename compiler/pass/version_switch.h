// Reads the switch that tells which version of a function is to run
// (abi/abi.h, "Versions"), and the weights of branches on it.
#pragma once

#include "llvm/IR/IRBuilder.h"

namespace spw::pass {

class VersionSwitch {
 public:
  explicit VersionSwitch(llvm::LLVMContext& context);

  // Whether the instrumented version is to run now: an i1, read anew each time.
  llvm::Value* is_set(llvm::IRBuilder<>& builder) const;

  // A byte of the runtime's tables: nothing that the program writes, and sanitizers leave it alone.
  llvm::LoadInst* load_byte(llvm::IRBuilder<>& builder, llvm::Value* address, const char* name) const;

  // For a branch whose first successor is hardly ever taken.
  llvm::MDNode* unlikely() const { return unlikely_; }
  // For one whose first successor must not look too cold: where blocks are 2^13 times colder than the function's entry,
  // the register allocator no longer knows loops from what is colder still, and spills in them.
  llvm::MDNode* rather_unlikely() const { return rather_unlikely_; }

 private:
  llvm::MDNode* unlikely_;
  llvm::MDNode* rather_unlikely_;
  llvm::MDNode* table_type_;
};

}  // namespace spw::pass
