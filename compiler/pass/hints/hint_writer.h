// Writes what abi/hints.h describes: tests of hint bytes, of the switch, and calls of the entry points.
//
// A test splits the block that it stands in; the call lies in a cold block of its own. No value but the address passes
// through a test, so where it stands is free wherever its address is at hand. Test what is written last to first:
// splitting a block then moves only what lies behind, and the whole stays linear.
#pragma once

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "pass/version_switch.h"

namespace spw::pass {

class HintWriter {
 public:
  explicit HintWriter(llvm::Module& module);

  // kSure: the program touches the address, or one in the piece beside it, right after. kGuess: it may not; the address
  // can be anything at all, and is cut to what has a hint byte.
  enum class Address { kSure, kGuess };

  // In front of `before`: "the hint says no: call".
  void test(llvm::Instruction& before, llvm::Value* address, bool is_store, Address kind = Address::kSure);
  // The same where `call` accesses the address: what is asked for then is that it be in place, and no raw address is of
  // use any more.
  void test_for_call(llvm::Instruction& call, llvm::Value* address, bool is_store,
                     Address kind = Address::kSure);

  // The same; what it returns in front of `before` is where [address + low_bytes, + bytes) is to be accessed: the raw
  // address of `address`.
  llvm::Value* reach(llvm::Instruction& before, llvm::Value* address, int64_t low_bytes, uint64_t bytes,
                     bool is_store, unsigned site);

  // The same as test(), if `lead` has just entered a piece: it moves by `stride_bytes`,
  // less than a piece, from one execution of `before` to the next.
  void test_at_piece_entry(llvm::Instruction& before, llvm::Value* lead, int64_t stride_bytes, bool is_store);

  // `bytes` is an i64.
  void call_range(llvm::IRBuilder<>& builder, llvm::Value* address, llvm::Value* bytes, bool is_store);
  void call_stream(llvm::IRBuilder<>& builder, llvm::Value* address, llvm::Value* bytes, bool is_store);

  // Whether hints matter now.
  const VersionSwitch& version_switch() const { return switch_; }

  void require_version();

 private:
  llvm::Instruction* when_no(llvm::Instruction& before, llvm::Value*& address, bool is_store, Address kind);
  llvm::Value* says_no(llvm::IRBuilder<>& builder, llvm::Value* bits, bool is_store);
  void call_c(llvm::IRBuilder<>& builder, const char* name, llvm::Value* address, llvm::Value* bytes,
              bool is_store);

  llvm::Module& module_;
  llvm::IntegerType* word_;
  llvm::PointerType* pointer_;
  VersionSwitch switch_;
};

}  // namespace spw::pass
