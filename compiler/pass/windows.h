// Windows: the granule that a stream of accesses was last translated in, kept in two registers.
//
//   in window:  address - start <= granule size - size of the access   (unsigned)   =>   raw = address + delta
//
// A window costs three instructions where a lookup costs fourteen and no load on the way to the address. It holds an
// unmanaged address' granule as well, with delta 0.
//
// Invariant: start is kClosed, or the granule at `start` translates by `delta` now. A translation that the direct SATC
// answers evicts nothing, so only calls can end a translation's life: every call that may translate, ours in cold
// blocks or the program's, closes all windows of the function first. The windows are variables of the entry block
// until finish() turns them into registers.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"

namespace spw::pass {

struct Window {
  llvm::AllocaInst* start;
  llvm::AllocaInst* delta;
};

class Windows {
 public:
  // No user address plus a granule reaches this, so a closed window contains nothing.
  static constexpr uint64_t kClosed = uint64_t(1) << 63;

  explicit Windows(llvm::Function& function) : function_(function) {}

  Window create();
  // Closes the windows at calls and promotes them. After all other changes to the function.
  void finish();

 private:
  llvm::Function& function_;
  llvm::SmallVector<Window, 4> windows_;
};

// Whether `instruction`, of a function not yet instrumented, may come to translate and so end what other translations
// promised: any call, inline assembly (which may fault into the runtime) and any intrinsic that touches memory.
bool may_translate(const llvm::Instruction& instruction);

}  // namespace spw::pass
