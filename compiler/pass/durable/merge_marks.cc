#include "pass/durable/merge_marks.h"

#include "llvm/IR/IntrinsicInst.h"
#include "pass/durable/store_marks.h"
#include "pass/llvm_versions.h"

namespace spw::pass {

using namespace llvm;

namespace {

// More is not merged: what one announcement holds back has a bound.
constexpr int64_t kMergedBytesMax = 4096;

// What a mark announces: [base + low, base + high).
struct Piece {
  CallInst* mark = nullptr;
  const Value* base = nullptr;
  int64_t low = 0;
  int64_t high = 0;
};

// Nothing when its bytes are not known, or when it has to be announced
// right where it is stored: another thread may store to it, too.
std::optional<Piece> piece_of(CallInst& mark, const DataLayout& layout) {
  const Instruction* store = mark.getNextNode();
  if (store->isAtomic() || store->isVolatile()) return std::nullopt;
  const auto* bytes = dyn_cast<ConstantInt>(mark.getArgOperand(1));
  if (!bytes || bytes->getValue().ugt(kMergedBytesMax)) return std::nullopt;
  APInt offset(64, 0);
  const Value* base = mark.getArgOperand(0)->stripAndAccumulateConstantOffsets(layout, offset, true);
  if (offset.getSignificantBits() > 48) return std::nullopt;
  const int64_t low = offset.getSExtValue();
  return Piece{&mark, base, low, low + bytes->getSExtValue()};
}

bool lets_others_in(const Instruction& instruction) {
  if (instruction.isAtomic() || instruction.isVolatile() || instruction.mayThrow() ||
      !instruction.willReturn())
    return true;
  const auto* call = dyn_cast<CallBase>(&instruction);
  if (!call || call->doesNotAccessMemory() || isa<MemIntrinsic>(call)) return false;
  const auto* intrinsic = dyn_cast<IntrinsicInst>(call);
  return !intrinsic || !intrinsic->isAssumeLikeIntrinsic();
}

class Run {
 public:
  // Whether `piece` belongs to the run, which then stands for it as well.
  bool try_add(const Piece& piece) {
    if (marks_.empty() || piece.base != first_.base || piece.low > high_ || piece.high < low_) return false;
    const int64_t low = std::min(low_, piece.low);
    const int64_t high = std::max(high_, piece.high);
    if (high - low > kMergedBytesMax) return false;
    low_ = low;
    high_ = high;
    marks_.push_back(piece.mark);
    return true;
  }

  void begin(const Piece& piece) {
    end();
    first_ = piece;
    low_ = piece.low;
    high_ = piece.high;
    marks_.push_back(piece.mark);
  }

  void end() {
    if (marks_.size() > 1) {
      IRBuilder<> builder(first_.mark);
      Value* address = first_.mark->getArgOperand(0);
      if (low_ != first_.low)
        address = ptr_add(builder, address, builder.getInt64(static_cast<uint64_t>(low_ - first_.low)));
      first_.mark->setArgOperand(0, address);
      first_.mark->setArgOperand(1, builder.getInt64(static_cast<uint64_t>(high_ - low_)));
      for (CallInst* mark : drop_begin(marks_)) mark->eraseFromParent();
    }
    marks_.clear();
  }

 private:
  Piece first_;
  int64_t low_ = 0;
  int64_t high_ = 0;
  SmallVector<CallInst*, 8> marks_;
};

}  // namespace

void merge_store_marks(Function& function) {
  const DataLayout& layout = function.getParent()->getDataLayout();
  for (BasicBlock& block : function) {
    Run run;
    for (Instruction& instruction : block) {
      if (is_store_mark(instruction)) {
        const auto piece = piece_of(cast<CallInst>(instruction), layout);
        if (!piece)
          run.end();
        else if (!run.try_add(*piece))
          run.begin(*piece);
      } else if (lets_others_in(instruction)) {
        run.end();
      }
    }
    run.end();
  }
}

}  // namespace spw::pass
