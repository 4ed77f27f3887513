// Innermost loops that end when a counter meets or passes a bound: "counter += step; while (counter != bound)", or
// "< bound" upwards, "> bound" downwards. What the optimiser makes of countable loops, vector loops included. Such a
// loop can be cut into chunks without a change to what its body does: an outer loop sets nearer bounds.
//
//     preheader ──> dispatch ──> header … latch ──(at end)──> done ──(at bound)──> exit
//                      ▲                                        │
//                      └────────────────────────────────────────┘
//
// Invariants: dispatch has one phi for each of the header's, in the same order, with the value that the header's is
// about to take; but a counter that only counts runs to zero in each chunk, so that `counter` and `compared` are of no
// use once the loop is cut. The loop may have other exits; they are left alone. Why no iteration is lost or done twice:
// `end` lies between the counter and `bound`, so whoever is not at `end` is not at `bound`; and `done` asks what the
// loop asked.
#pragma once

#include <optional>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

namespace spw::pass {

struct CountedLoop {
  llvm::BasicBlock* preheader = nullptr;
  llvm::BasicBlock* header = nullptr;
  llvm::BasicBlock* latch = nullptr;
  llvm::BasicBlock* exit = nullptr;  // of the latch
  llvm::PHINode* counter = nullptr;  // an integer of 32 or 64 bits, or a pointer
  llvm::Value* compared = nullptr;   // the counter or its next value
  llvm::Value* bound = nullptr;      // invariant
  llvm::CmpInst::Predicate goes_on =
      llvm::CmpInst::BAD_ICMP_PREDICATE;  // while `compared` is this to `bound`
  int64_t step = 0;                       // in bytes for a pointer

  static std::optional<CountedLoop> recognise(const llvm::Loop& loop);

  // The same loop in a copy of the function's body.
  CountedLoop in_copy(const llvm::ValueToValueMapTy& copies) const;

  uint64_t stride() const { return static_cast<uint64_t>(std::abs(step)); }

  // How far the bound is, in units of the counter and as an i64, when the counter is `now` at the header. After the
  // iteration at hand, distance / stride() more follow, rounded up.
  llvm::Value* distance(llvm::IRBuilder<>& builder, llvm::Value* now) const;
};

struct ChunkedLoop {
  llvm::BasicBlock* dispatch = nullptr;
  llvm::SmallVector<llvm::PHINode*, 8> phis;  // of dispatch, in the order of the header's

  // Cuts `loop`. `chunk` says in dispatch how far the next chunk goes, at most `left`: distances as of
  // CountedLoop::distance. It may split dispatch and returns with the builder at the end of what it wrote.
  using Chunk = llvm::function_ref<llvm::Value*(llvm::IRBuilder<>&, const ChunkedLoop&, llvm::Value* left)>;
  static ChunkedLoop cut(const CountedLoop& loop, Chunk chunk);
};

}  // namespace spw::pass
