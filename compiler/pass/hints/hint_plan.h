// Decides where the hints of a function stand, and how often each is tested. Changes nothing.
//
// Every access asks for one hint. Then, each step with a switch of its own (options.h):
//   hoist       An address that does not change in a loop is tested before it, if each iteration uses it.
//   merge       Of two hints in a block, less than kNearBytes apart on one base, the first stands for both; a load's becomes a
//               store's if it has to.
//   dominated   The same where the first dominates the second, unless the second alone is a store's.
//   block-wise  An address that moves through a loop by a small constant stride is a *stream*.
//               It is tested where it enters a piece (hints.h) only. Vector loops that count to
//               a bound are cut into chunks in which no stream leaves its piece, and keep their
//               body; others ask "is this the first access to its piece?" at every iteration.
//
//   reach       What is then tested where it is accessed gets a raw address of a block that is not at its own
//               (hints.h), as do the accesses of the same segment that it stands for.
//
// All of this may test too little or the wrong piece now and then; a fault serves what was not tested. What it must not
// do is to ask for the hint of an address that is none: see HintWriter::Address.
#pragma once

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Dominators.h"
#include "pass/access.h"
#include "pass/counted_loop.h"
#include "pass/hints/hint_writer.h"

namespace spw::pass {

struct PlannedHint {
  llvm::Instruction* before = nullptr;
  llvm::Value* address = nullptr;
  bool is_store = false;
  HintWriter::Address kind = HintWriter::Address::kSure;
  // The bytes that it stands for: [address + low_bytes, address + high_bytes].
  int64_t low_bytes = 0;
  int64_t high_bytes = 0;
  // Not 0: a stream of the loop that `before` is in.
  int64_t stride_bytes = 0;
  bool continues = false;  // a stream that goes on where an earlier run of the loop ended
  llvm::Value* first =
      nullptr;  // of a stream: the address in the first iteration, once computed before the loop

  // The accesses that use its raw address, each so many bytes behind `address`, in their order; none: it asks for none.
  struct Reached {
    Access access;
    int64_t distance_bytes;
  };
  llvm::SmallVector<Reached, 2> reached;
  unsigned site = 0;  // abi/hints.h
  // The blocks behind its own through which the raw address is of use.
  llvm::SmallPtrSet<llvm::BasicBlock*, 4> alive_in;

  // The byte of a stream that enters a piece first.
  int64_t lead_bytes() const { return stride_bytes < 0 ? low_bytes : high_bytes; }
};

// Numbers the sites of those that reach; what there is no number left for does not.
void number_sites(llvm::MutableArrayRef<PlannedHint> hints);

// Its range is not too long for one raw address.
bool may_reach(const Access& access);

// The length of a short copy that is known, or of a fill: two accesses, or one, without an end to a segment. It has to
// be written as instructions. (Where a move's ranges overlap, they have to be seen to do so, by the addresses.)
std::optional<uint64_t> short_copy_bytes(const llvm::Instruction& instruction);

struct PlannedLoop {
  llvm::Loop* loop = nullptr;
  std::optional<CountedLoop> counted;
  bool is_cut = false;                              // block-wise, in chunks
  llvm::Instruction* before = nullptr;              // the preheader's end
  llvm::SmallVector<llvm::Value*, 8> entry_values;  // of the header's phis, in their order
  llvm::Value* first_count = nullptr;               // of the counter
  llvm::SmallVector<PlannedHint, 4> streams;
};

struct HintPlan {
  llvm::SmallVector<PlannedHint, 0> hints;  // tested where they stand, in the order of `accesses`
  llvm::SmallVector<PlannedLoop, 4> loops;  // those with streams
};

HintPlan plan_hints(llvm::ArrayRef<Access> accesses, llvm::LoopInfo& loops, llvm::DominatorTree& tree,
                    llvm::ScalarEvolution& evolution);

// `address`, computed in a loop from the header's phis and from what does not change in it, for phis that have the
// values `known` gives them; at the builder's place outside the loop. can_compute says whether that is possible.
bool can_compute(llvm::Value* address, const llvm::Loop& loop);
llvm::Value* compute(llvm::Value* address, const llvm::Loop& loop, llvm::ValueToValueMapTy& known,
                     llvm::IRBuilder<>& builder);

}  // namespace spw::pass
