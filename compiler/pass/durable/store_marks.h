// Marks: where a store to persistent memory has to be announced
// (abi/durable.h), from when it is found until the code for it is written.
//
// A mark is a call of a function that exists within the pass only, mark(address, bytes), in front of
// the store. It is put there before the engine's part of the pass works on the module and becomes
// "inside the range: call" after it. So the test is made on the program's own address though the store
// may get another; a copy of the store (two_versions.h, a segment's slow side) has its mark with it;
// and no block is split while the engine still looks for loops and blocks to work on as a whole.
//
// Invariants: a mark accesses no memory that anything else does, translates nothing and ends neither segments nor
// windows; nothing moves a store of the program over another's mark; no mark is left after write_store_tests().
#pragma once

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace spw::pass {

bool is_store_mark(const llvm::Instruction& instruction);

class StoreMarks {
 public:
  explicit StoreMarks(llvm::Module& module);

  // `bytes` is an i64.
  llvm::CallInst* put(llvm::IRBuilder<>& builder, llvm::Value* address, llvm::Value* bytes);

  // An i1: whether [address, address + span_bytes) may have bytes in common with the range. For a span of one byte
  // exact, for others it may say so of what lies right in front of the range.
  llvm::Value* in_range(llvm::IRBuilder<>& builder, llvm::Value* address, uint64_t span_bytes = 1);
  // The same for each of a vector of addresses: a vector of i1.
  llvm::Value* in_range_each(llvm::IRBuilder<>& builder, llvm::Value* addresses);

  // Of a branch whose first successor is taken for persistent memory.
  llvm::MDNode* unlikely() const { return unlikely_; }

  // Every mark of the module becomes test and call.
  void write_store_tests();

 private:
  llvm::Value* load_word(llvm::IRBuilder<>& builder, unsigned field);
  void write_store_test(llvm::CallInst& mark);

  llvm::Module& module_;
  llvm::IntegerType* word_;
  llvm::MDNode* unlikely_;
};

}  // namespace spw::pass
