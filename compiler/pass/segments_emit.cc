#include "abi/abi.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/ValueMapper.h"
#include "pass/segments.h"

namespace spw::pass {

using namespace llvm;

namespace {

void move_before(Value* value, Instruction* place) {
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction || instruction->getParent() != place->getParent() || instruction->comesBefore(place))
    return;
  for (Value* operand : instruction->operands()) move_before(operand, place);
  instruction->moveBefore(place);
}

// The copy of `fast` that leaves to the same `join`, which gets phis for what both compute.
BasicBlock* clone_piece(BasicBlock* fast, BasicBlock* join, ValueToValueMapTy& copies) {
  BasicBlock* slow = CloneBasicBlock(fast, copies, ".slow", fast->getParent());
  for (Instruction& instruction : *slow) {
    RemapInstruction(&instruction, copies, RF_IgnoreMissingLocals | RF_NoModuleLevelChanges);
    RemapDbgRecordRange(fast->getModule(), instruction.getDbgRecordRange(), copies,
                        RF_IgnoreMissingLocals | RF_NoModuleLevelChanges);
  }
  for (Instruction& instruction : *fast) {
    SmallVector<Use*, 8> outside;
    for (Use& use : instruction.uses())
      if (cast<Instruction>(use.getUser())->getParent() != fast) outside.push_back(&use);
    if (outside.empty()) continue;
    PHINode* both = PHINode::Create(instruction.getType(), 2, "spw.both", join->begin());
    both->addIncoming(&instruction, fast);
    both->addIncoming(copies[&instruction], slow);
    for (Use* use : outside) use->set(both);
  }
  return slow;
}

class HeadWriter {
 public:
  HeadWriter(Translator& translator, Windows& windows, BasicBlock* slow, BasicBlock* fast)
      : translator_(translator), windows_(windows), slow_(slow), fast_(fast) {}

  // Translates the group's range in `*block`, which has no terminator, and leaves the block to go on in there.
  Value* translate(const Group& group, BasicBlock** block) {
    const Access& first = group.accesses.front();
    place_ = first.instruction->getDebugLoc();
    IRBuilder<> builder(*block);
    builder.SetCurrentDebugLocation(place_);
    low_ = group.low
               ? builder.CreatePtrAdd(first.address(), builder.getInt64(static_cast<uint64_t>(group.low)))
               : first.address();
    bits_ = builder.CreatePtrToInt(low_, builder.getInt64Ty(), "spw.address");
    return group.is_stream ? translate_stream(group, block) : translate_range(group, block);
  }

 private:
  BasicBlock* new_block(const char* name) {
    return BasicBlock::Create(fast_->getContext(), name, fast_->getParent(), fast_);
  }

  Value* translate_stream(const Group& group, BasicBlock** block) {
    const Window window = windows_.create();
    BasicBlock* outside = new_block("spw.outside");
    BasicBlock* ready = new_block("spw.ready");
    IRBuilder<> builder(*block);
    builder.SetCurrentDebugLocation(place_);
    Value* distance = builder.CreateSub(bits_, builder.CreateLoad(builder.getInt64Ty(), window.start));
    Value* inside = builder.CreateICmpULE(distance, builder.getInt64(SPW_GRANULE_BYTES - group.span_bytes()));
    Value* known = builder.CreateLoad(builder.getInt64Ty(), window.delta);
    builder.CreateCondBr(inside, ready, outside, likely(builder.getContext()));
    BasicBlock* from = *block;

    *block = outside;
    Value* found = translate_range(group, block);
    builder.SetInsertPoint(*block);
    builder.CreateStore(builder.CreateAnd(bits_, builder.getInt64(~(SPW_GRANULE_BYTES - 1))), window.start);
    builder.CreateStore(found, window.delta);
    builder.CreateBr(ready);

    PHINode* delta = PHINode::Create(builder.getInt64Ty(), 2, "spw.delta", ready);
    delta->addIncoming(known, from);
    delta->addIncoming(found, *block);
    *block = ready;
    return delta;
  }

  Value* translate_range(const Group& group, BasicBlock** block) {
    const Translator::Range range{low_, bits_, group.span_bytes(), group.may_cross(), group.is_store};
    return translator_.translate_range(range, block, slow_, place_);
  }

  Translator& translator_;
  Windows& windows_;
  BasicBlock* slow_;
  BasicBlock* fast_;
  DebugLoc place_;
  Value* low_ = nullptr;
  Value* bits_ = nullptr;
};

}  // namespace

void translate_segment(const Segment& segment, Translator& translator, Windows& windows,
                       SetVector<Instruction*>& pending) {
  for (const Group& group : segment.groups) move_before(group.accesses.front().address(), segment.first);
  BasicBlock* head = segment.first->getParent();
  BasicBlock* fast = head->splitBasicBlock(segment.first->getIterator(), "spw.fast");
  BasicBlock* join = fast->splitBasicBlock(std::next(segment.last->getIterator()), "spw.join");
  head->getTerminator()->eraseFromParent();

  BasicBlock* slow = nullptr;
  SmallVector<Instruction*, 16> copied;
  if (any_of(segment.groups, [](const Group& group) { return group.may_cross(); })) {
    ValueToValueMapTy copies;
    slow = clone_piece(fast, join, copies);
    for (Instruction& instruction : *fast)
      if (pending.contains(&instruction)) copied.push_back(cast<Instruction>(copies[&instruction]));
  }
  for (const Group& group : segment.groups)
    for (const Access& access : group.accesses) pending.remove(access.instruction);
  pending.insert(copied.begin(), copied.end());

  HeadWriter writer(translator, windows, slow, fast);
  BasicBlock* block = head;
  for (const Group& group : segment.groups) {
    Value* delta = writer.translate(group, &block);
    for (const Access& access : group.accesses) {
      IRBuilder<> builder(access.instruction);
      access.set_address(builder.CreatePtrAdd(access.address(), delta, "spw.raw"));
      forget_invariance(*access.instruction);
    }
  }
  IRBuilder<>(block).CreateBr(fast);
}

}  // namespace spw::pass
