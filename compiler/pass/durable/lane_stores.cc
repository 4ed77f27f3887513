#include "pass/durable/lane_stores.h"

#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "pass/llvm_versions.h"
#include "pass/masked_accesses.h"

namespace spw::pass {

using namespace llvm;

namespace {

constexpr unsigned kValueOperand = 0;
constexpr unsigned kPointerOperand = 1;

struct LaneStore {
  IntrinsicInst* intrinsic;
  Value* value;
  Value* address;  // of lane 0, or a vector of every lane's
  Value* mask;
  FixedVectorType* vector;
  Align alignment;  // of lane 0, or of every lane
  uint64_t lane_bytes;

  unsigned lanes() const { return vector->getNumElements(); }
  bool is_scatter() const { return address->getType()->isVectorTy(); }
};

LaneStore describe(IntrinsicInst& intrinsic) {
  LaneStore store{};
  store.intrinsic = &intrinsic;
  store.value = intrinsic.getArgOperand(kValueOperand);
  store.address = intrinsic.getArgOperand(kPointerOperand);
  store.vector = cast<FixedVectorType>(store.value->getType());
  const DataLayout& layout = intrinsic.getModule()->getDataLayout();
  store.lane_bytes = layout.getTypeStoreSize(store.vector->getElementType()).getFixedValue();
  if (intrinsic.getIntrinsicID() == Intrinsic::masked_compressstore) {
    store.mask = intrinsic.getArgOperand(kPointerOperand + 1);
  } else {
    const MaskedOperands operands = masked_operands(intrinsic, kPointerOperand);
    store.mask = intrinsic.getArgOperand(operands.mask);
    store.alignment = operands.alignment;
  }
  return store;
}

// One bit for each lane, the first lowest.
Value* lane_bits(IRBuilder<>& builder, const LaneStore& store, Value* lanes) {
  Value* bits = builder.CreateBitCast(lanes, builder.getIntNTy(store.lanes()));
  return builder.CreateZExt(bits, builder.getInt64Ty());
}

void mark_compressing_store(const LaneStore& store, StoreMarks& marks) {
  IRBuilder<> builder(store.intrinsic);
  Value* count = builder.CreateUnaryIntrinsic(Intrinsic::ctpop, lane_bits(builder, store, store.mask));
  marks.put(builder, store.address, builder.CreateMul(count, builder.getInt64(store.lane_bytes)));
}

// Whether a lane that is switched on may lie in the range. Lanes that are not may have any address.
Value* may_hit(IRBuilder<>& builder, const LaneStore& store, StoreMarks& marks) {
  if (!store.is_scatter())
    return marks.in_range(builder, builder.CreateFreeze(store.address), store.lanes() * store.lane_bytes);
  Value* hits = builder.CreateSelect(store.mask, marks.in_range_each(builder, store.address),
                                     Constant::getNullValue(store.mask->getType()));
  return builder.CreateICmpNE(lane_bits(builder, store, hits), builder.getInt64(0));
}

// From the block of `end` to `done`, a loop over the lanes that are switched on:
//
//   end's block:  bits = mask;  any? turn : done
//   turn:         left = phi;  lane = lowest bit of left;  mark; store;  left without it? turn : done
void write_lanes(const LaneStore& store, BranchInst* end, BasicBlock* done, StoreMarks& marks) {
  Type* element = store.vector->getElementType();
  BasicBlock* entry = end->getParent();
  BasicBlock* turn = BasicBlock::Create(end->getContext(), "spw.lane", end->getFunction(), done);
  IRBuilder<> builder(end);
  builder.SetCurrentDebugLocation(store.intrinsic->getDebugLoc());
  Value* bits = lane_bits(builder, store, store.mask);
  builder.CreateCondBr(builder.CreateICmpNE(bits, builder.getInt64(0)), turn, done);
  end->eraseFromParent();

  builder.SetInsertPoint(turn);
  PHINode* left = builder.CreatePHI(builder.getInt64Ty(), 2);
  Value* lane = builder.CreateBinaryIntrinsic(Intrinsic::cttz, left, builder.getTrue());
  Value* address = store.is_scatter() ? builder.CreateExtractElement(store.address, lane)
                                      : builder.CreateGEP(element, store.address, lane);
  Value* value = builder.CreateExtractElement(store.value, lane);
  marks.put(builder, address, builder.getInt64(store.lane_bytes));
  builder.CreateAlignedStore(value, address, commonAlignment(store.alignment, store.lane_bytes));
  Value* rest = builder.CreateAnd(left, builder.CreateSub(left, builder.getInt64(1)));
  builder.CreateCondBr(builder.CreateICmpNE(rest, builder.getInt64(0)), turn, done);
  left->addIncoming(bits, entry);
  left->addIncoming(rest, turn);
}

}  // namespace

bool is_lane_store(const IntrinsicInst& intrinsic) {
  switch (intrinsic.getIntrinsicID()) {
    case Intrinsic::masked_store:
    case Intrinsic::masked_scatter:
    case Intrinsic::masked_compressstore:
      return is_masked_access(intrinsic);
    default:
      return false;
  }
}

Value* address_of_lane_store(const IntrinsicInst& intrinsic) {
  return intrinsic.getArgOperand(kPointerOperand);
}

void mark_lane_store(IntrinsicInst& intrinsic, StoreMarks& marks) {
  const LaneStore store = describe(intrinsic);
  if (intrinsic.getIntrinsicID() == Intrinsic::masked_compressstore)
    return mark_compressing_store(store, marks);
  IRBuilder<> builder(&intrinsic);
  Value* hit = may_hit(builder, store, marks);
  Instruction* one_by_one = nullptr;
  Instruction* whole = nullptr;
  SplitBlockAndInsertIfThenElse(hit, &intrinsic, &one_by_one, &whole, marks.unlikely());
  BasicBlock* done = intrinsic.getParent();
  intrinsic.moveBefore(*whole->getParent(), whole->getIterator());
  write_lanes(store, cast<BranchInst>(one_by_one), done, marks);
}

}  // namespace spw::pass
