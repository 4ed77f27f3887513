// Two versions of a function in one: the *plain* body as it was optimised,
// and the *instrumented* one beside it, with hints or translations.
//
// Static allocas stay in the entry block, which both share. The entry block reads the switch (abi/abi.h,
// "Versions") and enters one of them; so do loops of the plain body, and go over to the same place of
// the instrumented one. A long loop that counts to a bound does so once a chunk, which costs its body
// nothing; others at each iteration, but for innermost ones within another loop (a search, a walk along
// a chain), where it would cost too much: they wait for the next iteration outside.
// With Returns::kYes the instrumented body goes back at its outermost loops when the switch is clear again. Not at
// loops within others: the plain ones would have two entries each, and no longer be loops for what follows.
//
// Use: prepare(), construct, connect(); and instrument `function` before connect() or after it.
//   Hints, which need no value but an address, are written before:
//       meanwhile the plain body is unreachable, so analyses see only
//   the other one. Who cuts an instrumented loop says so (loop_is_cut).
//   Translations, whose values later code uses, are written after:
//       enter_in_front() before connect() has crossings enter loops
//   as their preheaders do, so that these stay loops. Instrument no block for which is_plain() holds.
//
// What a body uses behind a place where the other comes over is from two places then; connect() inserts the phis.
#pragma once

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Transforms/Utils/ValueMapper.h"
#include "pass/counted_loop.h"
#include "pass/version_switch.h"

namespace spw::pass {

// Whether the body of `function` can be there twice.
bool can_have_two_versions(const llvm::Function& function);

// Whether the instrumented body may go over to the plain one in mid-call.
enum class Returns { kNo, kYes };

class TwoVersions {
 public:
  // Gives loops their usual shape, and each version a block to begin with.
  static void prepare(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

  TwoVersions(llvm::Function& function, llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution,
              Returns returns);

  // The instrumented loop of that header is entered through `cut.dispatch` now.
  void loop_is_cut(llvm::BasicBlock* header, const ChunkedLoop& cut);
  // Cuts the other instrumented loops that may return, for the same reason as plain ones are cut. Before any block is
  // split.
  void cut_returning_loops(const VersionSwitch& version_switch);
  // Crossings enter each instrumented loop in front of its header. `loops`: those of the constructor.
  void enter_in_front(const llvm::LoopInfo& loops);

  // `entry_weights`: of the branch whose first successor is the instrumented version; nullptr: both count the same.
  void connect(const VersionSwitch& version_switch, llvm::MDNode* entry_weights);

  bool is_plain(const llvm::BasicBlock& block) const { return plain_blocks_.contains(&block); }

 private:
  static void separate_entry(llvm::Function& function);

  // The header of a loop in one of the bodies, or the dispatch of one that is cut.
  struct Place {
    llvm::BasicBlock* entry = nullptr;          // which the other body goes over to
    llvm::SmallVector<llvm::PHINode*, 8> phis;  // its own, in the order of the header's
    llvm::BasicBlock* exit = nullptr;           // where it goes over itself: the entry, or behind it
    std::optional<CountedLoop> counted;         // not yet cut
  };
  struct Crossing {
    Place plain;
    Place instrumented;
    bool returns = false;
  };

  void clone_body();
  void find_crossings(llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution);
  void cut(Place& place, const VersionSwitch& version_switch);
  static void write_crossing(const Place& from, const Place& to, bool when_set,
                             const VersionSwitch& version_switch);
  void repair();

  llvm::Function& function_;
  const Returns returns_;
  llvm::BasicBlock* entry_;
  llvm::BasicBlock* instrumented_;    // where the instrumented body begins
  llvm::ValueToValueMapTy plain_of_;  // from the instrumented body's values and blocks
  llvm::SmallPtrSet<const llvm::BasicBlock*, 0> plain_blocks_;
  llvm::MapVector<llvm::BasicBlock*, Crossing> crossings_;  // by header of the instrumented loop
};

}  // namespace spw::pass
