#include "abi/abi.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/ValueMapper.h"
#include "pass/llvm_versions.h"
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
    remap_debug_users(instruction, copies, RF_IgnoreMissingLocals | RF_NoModuleLevelChanges);
  }
  for (Instruction& instruction : *fast) {
    SmallVector<Use*, 8> outside;
    for (Use& use : instruction.uses())
      if (cast<Instruction>(use.getUser())->getParent() != fast) outside.push_back(&use);
    if (outside.empty()) continue;
    PHINode* both = make_phi(*join, instruction.getType(), 2, "spw.both");
    both->addIncoming(&instruction, fast);
    both->addIncoming(copies[&instruction], slow);
    for (Use* use : outside) use->set(both);
  }
  return slow;
}

class HeadWriter {
 public:
  HeadWriter(const Segment& segment, Windows& windows, BasicBlock* slow)
      : windows_(windows),
        slow_(slow),
        spans_left_(Segment::kTranslationsMax - std::min(segment.translations, Segment::kTranslationsMax)) {}

  // Translates the group's range in `*block`, which has no terminator, and
  // leaves the block to go on in there. Returns the raw address of the range.
  Value* translate(const Group& group, BasicBlock** block) {
    const Access& first = group.accesses.front();
    const DebugLoc& place = first.instruction->getDebugLoc();
    IRBuilder<> builder(*block);
    builder.SetCurrentDebugLocation(place);
    Value* low = group.low
                     ? ptr_add(builder, first.address(), builder.getInt64(static_cast<uint64_t>(group.low)))
                     : first.address();
    Value* bits = builder.CreatePtrToInt(low, builder.getInt64Ty(), "spw.address");
    const bool may_span = group.may_cross() && spans_left_ > 0;
    spans_left_ -= may_span;
    const Translator::Range range{low, bits, group.span_bytes(), group.may_cross(), group.is_store, may_span};
    return windows_.translate(group.is_stream ? &window_of(group) : nullptr, range, block, slow_, place);
  }

 private:
  const Window& window_of(const Group& group) {
    const Value* address = group.accesses.front().address();
    const Window* known = windows_.find(address, group.home);
    const Window& window = known ? *known : windows_.create(address, group.home);
    for (const Access& access : group.accesses) windows_.also_for(window, access.address());
    return window;
  }

  Windows& windows_;
  BasicBlock* slow_;
  size_t spans_left_;
};

}  // namespace

void translate_segment(const Segment& segment, Windows& windows, SetVector<Instruction*>& pending,
                       SmallVectorImpl<Instruction*>& rare) {
  for (const Group& group : segment.groups) move_before(group.accesses.front().address(), segment.first);
  BasicBlock* head = segment.first->getParent();
  BasicBlock* fast = head->splitBasicBlock(segment.first->getIterator(), "spw.fast");
  BasicBlock* join = fast->splitBasicBlock(std::next(segment.last->getIterator()), "spw.join");
  head->getTerminator()->eraseFromParent();

  BasicBlock* slow = nullptr;
  if (any_of(segment.groups, [](const Group& group) { return group.may_cross(); })) {
    ValueToValueMapTy copies;
    slow = clone_piece(fast, join, copies);
    for (Instruction& instruction : *fast)
      if (pending.contains(&instruction)) rare.push_back(cast<Instruction>(copies[&instruction]));
  }
  for (const Group& group : segment.groups)
    for (const Access& access : group.accesses) pending.remove(access.instruction);

  HeadWriter writer(segment, windows, slow);
  BasicBlock* block = head;
  for (const Group& group : segment.groups) {
    Value* raw = writer.translate(group, &block);
    for (const auto& [access, offset] : zip_equal(group.accesses, group.offsets)) {
      IRBuilder<> builder(access.instruction);
      access.set_address(ptr_add(builder, raw, builder.getInt64(static_cast<uint64_t>(offset - group.low))));
      forget_invariance(*access.instruction);
    }
  }
  IRBuilder<>(block).CreateBr(fast);
}

}  // namespace spw::pass
