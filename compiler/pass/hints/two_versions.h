// Two versions of a function in one: the *plain* body as it was optimised, and the *hinted* one beside it, cold.
//
// Static allocas stay in the entry block, which both share. The entry block reads the switch (abi/hints.h) and enters one
// of them; so do loops of the plain body, and go over to the same place of the hinted one. A long loop that counts to a bound does so once
// a chunk, which costs its body nothing; others at each iteration, but for innermost ones within another loop (a search, a
// walk along a chain), where it would cost too much: they wait for the next iteration outside.
//
// Use: separate_entry(), construct, let others write hints into `function` as it stands, connect(). In between the plain body is
// unreachable, so analyses see only the hinted one. Who cuts a hinted loop says so (loop_is_cut).
//
// Edges lead from plain to hinted only. What the hinted body uses then comes from two places; connect() inserts the phis.
#pragma once

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/Transforms/Utils/ValueMapper.h"
#include "pass/hints/counted_loop.h"
#include "pass/hints/hint_writer.h"

namespace spw::pass {

// Whether the body of `function` can be there twice.
bool can_have_two_versions(const llvm::Function& function);

class TwoVersions {
 public:
  // Splits the static allocas from the rest of the function, so that there is a block to begin each version with.
  static void separate_entry(llvm::Function& function);

  TwoVersions(llvm::Function& function, llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution);

  // The hinted loop of that header is entered through `cut.dispatch` now.
  void loop_is_cut(llvm::BasicBlock* header, const ChunkedLoop& cut);

  void connect(HintWriter& writer);

 private:
  // Where the plain body may go over, and where to.
  struct Crossing {
    llvm::BasicBlock* from = nullptr;  // of the plain body
    llvm::BasicBlock* to = nullptr;
    llvm::SmallVector<llvm::PHINode*, 8> from_phis;
    llvm::SmallVector<llvm::PHINode*, 8> to_phis;
    std::optional<CountedLoop> counted;  // plain
  };

  void clone_body();
  void find_crossings(llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution);
  void cut_plain_loop(Crossing& crossing, HintWriter& writer);
  static void write_crossing(const Crossing& crossing, HintWriter& writer);
  void repair();

  llvm::Function& function_;
  llvm::BasicBlock* entry_;
  llvm::BasicBlock* hinted_;                                // where the hinted body begins
  llvm::ValueToValueMapTy plain_of_;                        // from the hinted body's values and blocks
  llvm::MapVector<llvm::BasicBlock*, Crossing> crossings_;  // by header of the hinted loop
};

}  // namespace spw::pass
