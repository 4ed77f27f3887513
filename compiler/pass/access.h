// A single load, store or atomic as the pass sees it.
#pragma once

#include <optional>

#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Instruction.h"
#include "llvm/IR/Value.h"

namespace spw::pass {

struct Access {
  llvm::Instruction* instruction = nullptr;
  unsigned pointer_operand = 0;
  uint64_t size_bytes = 0;
  bool is_store = false;   // needs a write translation: stores, read-modify-writes, compare-and-swaps
  bool may_cross = false;  // its alignment, as far as it is certain, does not keep it within one granule

  llvm::Value* address() const { return instruction->getOperand(pointer_operand); }
  void set_address(llvm::Value* raw) const { instruction->setOperand(pointer_operand, raw); }
};

// Whether an access of `size_bytes` at an address of that alignment can touch two granules.
bool may_cross_granule(uint64_t size_bytes, llvm::Align alignment);

// Whether the alignments that the front end claims are those at run time. It takes them from the types of pointers, and
// programs read and write through pointers that their type does not allow: this processor does it, and across a granule
// it would be half of the bytes in another frame. So the translated engine believes in them only when told to.
bool trusts_alignments();

// Nothing when `instruction` is no load, store or atomic, or is one to another address space.
std::optional<Access> access_of(llvm::Instruction& instruction, const llvm::DataLayout& layout);

// Takes away what is said of an access that no longer holds once its address is raw: a frame holds other
// blocks at other times, so the access must stay behind the translation that it follows.
void forget_invariance(llvm::Instruction& instruction);

}  // namespace spw::pass
