// Segments: straight pieces of one basic block whose accesses are translated together, at the head of the piece.
//
//   head:   for every group (accesses at constant offsets from one address): one translation of the range they cover,
//           through a window where the group is a stream of a loop
//   fast:   the accesses of the groups, at address + delta of their group
//   slow:   a copy of the piece, entered when a group's range crosses a granule; every access translated on its own
//   join:   what follows, with phis for what the piece computed
//
// Only what executes together is translated together: a piece holds no call, so once it is entered every access in it
// is made, and a range it covers belongs to one object.
// Invariant: a piece makes fewer than SPW_STABLE_TRANSLATIONS translations, so the first one still holds at its end. A
// range that spans two granules counts twice; so only as many groups of a piece may span as there is room for.
#pragma once

#include "abi/abi.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Dominators.h"
#include "pass/access.h"
#include "pass/translator.h"
#include "pass/windows.h"

namespace spw::pass {

// Accesses at constant distances. Offsets are relative to the address of the first access.
struct Group {
  explicit Group(const Access& access)
      : accesses{access},
        offsets{0},
        high(static_cast<int64_t>(access.size_bytes)),
        is_store(access.is_store) {}

  // Takes the access in when its distance is constant and the range stays within `span_bytes_max`.
  bool try_add(const Access& access, llvm::ScalarEvolution& evolution, int64_t span_bytes_max);

  llvm::SmallVector<Access, 4> accesses;
  llvm::SmallVector<int64_t, 4> offsets;  // of each access
  int64_t low = 0;
  int64_t high = 0;  // one past the last byte
  bool is_store = false;
  bool is_stream = false;                   // moves a little at every iteration of its loop, or not at all
  Windows::Home home = Windows::kFunction;  // of the window it goes through

  uint64_t span_bytes() const { return static_cast<uint64_t>(high - low); }
  bool may_cross() const { return accesses.size() > 1 || accesses.front().may_cross; }
  bool pays() const { return is_stream || accesses.size() > 1; }
};

struct Segment {
  static constexpr size_t kTranslationsMax = SPW_STABLE_TRANSLATIONS - 1;

  llvm::Instruction* first = nullptr;
  llvm::Instruction* last = nullptr;
  llvm::SmallVector<Group, 4> groups;  // those that pay
  size_t translations = 1;             // made in the piece, those of other accesses included
};

// Finds the segments of a function. Changes nothing.
class SegmentPlanner {
 public:
  SegmentPlanner(llvm::ScalarEvolution& evolution, llvm::LoopInfo& loops, llvm::DominatorTree& tree)
      : evolution_(evolution), loops_(loops), tree_(tree) {}

  // `accesses`: what has to be translated, in the order of instructions.
  llvm::SmallVector<Segment, 0> plan(llvm::ArrayRef<Access> accesses);

  // The largest loop around `place` that suits windows, or nullptr.
  const llvm::Loop* nest_of(const llvm::Instruction& place);

 private:
  // Plans one segment of `run`, accesses of one block with no call between them, and returns how many accesses it used.
  size_t plan_segment(llvm::ArrayRef<Access> run);
  void plan_run(llvm::ArrayRef<Access> run);
  llvm::SmallVector<Group, 8> group(llvm::ArrayRef<Access> run, llvm::SmallVectorImpl<size_t>& group_of);
  bool is_stream(const Access& access);
  bool takes_window(const Group& group);
  bool suits_windows(const llvm::Loop& loop);

  llvm::ScalarEvolution& evolution_;
  llvm::LoopInfo& loops_;
  llvm::DominatorTree& tree_;
  llvm::DenseMap<const llvm::Loop*, bool> suits_;
  llvm::DenseMap<const llvm::Loop*, unsigned> streams_;
  llvm::SmallVector<Segment, 0> planned_;
};

// Rewrites the function for one segment. `pending` is what has yet to be translated one by one: it loses the accesses
// of the groups. The copies of what it held in the slow piece are appended to `rare`.
void translate_segment(const Segment& segment, Windows& windows, llvm::SetVector<llvm::Instruction*>& pending,
                       llvm::SmallVectorImpl<llvm::Instruction*>& rare);

}  // namespace spw::pass
