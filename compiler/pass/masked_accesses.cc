#include "pass/masked_accesses.h"

#include "llvm/IR/IntrinsicsX86.h"
#include "pass/llvm_versions.h"

namespace spw::pass {

using namespace llvm;

namespace {

// One masked intrinsic in the terms all six share. A null value means that it has none.
struct Masked {
  IntrinsicInst* intrinsic;
  bool is_store;
  bool packed;           // active lanes are adjacent in memory: expandload, compressstore
  Value* pointer;        // of lane 0
  Value* lane_pointers;  // of every lane: gather, scatter
  unsigned pointer_operand;
  Value* mask;
  Value* stored;
  Value* pass_through;
  FixedVectorType* vector;
  Align alignment;  // of a whole vector, or of a lane for packed and gathered ones
};

// By the pointer operand. Which operand the mask is.
unsigned set_mask(Masked& m, const IntrinsicInst& call) {
  const MaskedOperands operands = masked_operands(call, m.pointer_operand);
  m.alignment = operands.alignment;
  m.mask = call.getArgOperand(operands.mask);
  return operands.mask;
}

bool describe(IntrinsicInst& call, Masked& m) {
  m = {};
  m.intrinsic = &call;
  switch (call.getIntrinsicID()) {
    case Intrinsic::masked_load:
      m.pointer = call.getArgOperand(0);
      m.pass_through = call.getArgOperand(set_mask(m, call) + 1);
      break;
    case Intrinsic::masked_store:
      m.stored = call.getArgOperand(0);
      m.pointer = call.getArgOperand(1);
      m.pointer_operand = 1;
      set_mask(m, call);
      break;
    case Intrinsic::masked_gather:
      m.lane_pointers = call.getArgOperand(0);
      m.pass_through = call.getArgOperand(set_mask(m, call) + 1);
      break;
    case Intrinsic::masked_scatter:
      m.stored = call.getArgOperand(0);
      m.lane_pointers = call.getArgOperand(1);
      m.pointer_operand = 1;
      set_mask(m, call);
      break;
    case Intrinsic::masked_expandload:
      m.packed = true;
      m.pointer = call.getArgOperand(0);
      m.alignment = call.getParamAlign(0).valueOrOne();
      m.mask = call.getArgOperand(1);
      m.pass_through = call.getArgOperand(2);
      break;
    case Intrinsic::masked_compressstore:
      m.packed = true;
      m.stored = call.getArgOperand(0);
      m.pointer = call.getArgOperand(1);
      m.pointer_operand = 1;
      m.alignment = call.getParamAlign(1).valueOrOne();
      m.mask = call.getArgOperand(2);
      break;
    default:
      return false;
  }
  m.is_store = m.stored != nullptr;
  m.vector = dyn_cast<FixedVectorType>(m.is_store ? m.stored->getType() : call.getType());
  return m.vector != nullptr;
}

// The lane loop, written into the empty block `from` and leaving to `to`:
//
//   from:  slots <- vectors;  loop: i = phi;  active(i)? lane: one access;  next: i+1 < lanes? loop;  leave:
//   to
//
// Returns the vector that the lanes loaded (nullptr for stores), valid in `leave`, which is returned through `last`.
Value* write_lane_loop(const Masked& m, BasicBlock* from, BasicBlock* to, Translator& translator,
                       SmallVectorImpl<Instruction*>& lanes, BasicBlock** last) {
  LLVMContext& context = from->getContext();
  Function& function = translator.function();
  const DataLayout& layout = function.getParent()->getDataLayout();
  Type* element = m.vector->getElementType();
  const unsigned count = m.vector->getNumElements();
  const Align element_alignment =
      commonAlignment(m.alignment, layout.getTypeStoreSize(element).getFixedValue());
  BasicBlock* loop = BasicBlock::Create(context, "spw.lanes", &function);
  BasicBlock* lane = BasicBlock::Create(context, "spw.lane", &function);
  BasicBlock* next = BasicBlock::Create(context, "spw.next_lane", &function);
  BasicBlock* leave = BasicBlock::Create(context, "spw.lanes_done", &function);

  IRBuilder<> builder(from);
  builder.SetCurrentDebugLocation(m.intrinsic->getDebugLoc());
  // Two vectors of one type may be alive at once, so these slots are not shared.
  AllocaInst* values = make_alloca(function, m.vector, "spw.values");
  builder.CreateStore(m.is_store ? m.stored : m.pass_through, values);
  AllocaInst* pointers = nullptr;
  if (m.lane_pointers) {
    pointers = translator.slot(m.lane_pointers->getType());
    builder.CreateStore(m.lane_pointers, pointers);
  }
  Type* bits_type = builder.getInt64Ty();
  Value* bits = builder.CreateZExt(builder.CreateBitCast(m.mask, builder.getIntNTy(count)), bits_type);
  builder.CreateBr(loop);

  builder.SetInsertPoint(loop);
  PHINode* index = builder.CreatePHI(bits_type, 2);
  PHINode* active_before = builder.CreatePHI(bits_type, 2);
  Value* active = builder.CreateTrunc(builder.CreateLShr(bits, index), builder.getInt1Ty());
  builder.CreateCondBr(active, lane, next);

  builder.SetInsertPoint(lane);
  Value* address = pointers ? builder.CreateLoad(builder.getPtrTy(),
                                                 builder.CreateGEP(builder.getPtrTy(), pointers, index))
                            : builder.CreateGEP(element, m.pointer, m.packed ? active_before : index);
  Value* value_slot = builder.CreateGEP(element, values, index);
  const Align slot_alignment =
      commonAlignment(values->getAlign(), layout.getTypeStoreSize(element).getFixedValue());
  if (m.is_store) {
    Value* value = builder.CreateAlignedLoad(element, value_slot, slot_alignment);
    lanes.push_back(builder.CreateAlignedStore(value, address, element_alignment));
  } else {
    LoadInst* value = builder.CreateAlignedLoad(element, address, element_alignment);
    lanes.push_back(value);
    builder.CreateAlignedStore(value, value_slot, slot_alignment);
  }
  Value* active_after = builder.CreateAdd(active_before, builder.getInt64(1));
  builder.CreateBr(next);

  builder.SetInsertPoint(next);
  PHINode* active_count = builder.CreatePHI(bits_type, 2);
  active_count->addIncoming(active_before, loop);
  active_count->addIncoming(active_after, lane);
  Value* index_next = builder.CreateAdd(index, builder.getInt64(1));
  builder.CreateCondBr(builder.CreateICmpULT(index_next, builder.getInt64(count)), loop, leave);
  index->addIncoming(builder.getInt64(0), from);
  index->addIncoming(index_next, next);
  active_before->addIncoming(builder.getInt64(0), from);
  active_before->addIncoming(active_count, next);

  builder.SetInsertPoint(leave);
  Value* loaded = m.is_store ? nullptr : builder.CreateLoad(m.vector, values);
  builder.CreateBr(to);
  *last = leave;
  return loaded;
}

// The intrinsic is replaced by the lane loop.
void lower_to_lanes(const Masked& m, Translator& translator, SmallVectorImpl<Instruction*>& lanes) {
  BasicBlock* block = m.intrinsic->getParent();
  BasicBlock* done = block->splitBasicBlock(m.intrinsic->getIterator(), "spw.done");
  block->getTerminator()->eraseFromParent();
  BasicBlock* last = nullptr;
  Value* loaded = write_lane_loop(m, block, done, translator, lanes, &last);
  if (loaded) m.intrinsic->replaceAllUsesWith(loaded);
  m.intrinsic->eraseFromParent();
}

}  // namespace

bool is_masked_access(const IntrinsicInst& intrinsic) {
  Masked m;
  if (!describe(const_cast<IntrinsicInst&>(intrinsic), m)) return false;
  const DataLayout& layout = intrinsic.getModule()->getDataLayout();
  return m.vector->getNumElements() <= 64 && layout.typeSizeEqualsStoreSize(m.vector->getElementType());
}

IntrinsicInst* generic_masked_access(IntrinsicInst& intrinsic) {
  bool is_store = false;
  switch (intrinsic.getIntrinsicID()) {
    case Intrinsic::x86_avx_maskload_ps:
    case Intrinsic::x86_avx_maskload_pd:
    case Intrinsic::x86_avx_maskload_ps_256:
    case Intrinsic::x86_avx_maskload_pd_256:
    case Intrinsic::x86_avx2_maskload_d:
    case Intrinsic::x86_avx2_maskload_q:
    case Intrinsic::x86_avx2_maskload_d_256:
    case Intrinsic::x86_avx2_maskload_q_256:
      break;
    case Intrinsic::x86_avx_maskstore_ps:
    case Intrinsic::x86_avx_maskstore_pd:
    case Intrinsic::x86_avx_maskstore_ps_256:
    case Intrinsic::x86_avx_maskstore_pd_256:
    case Intrinsic::x86_avx2_maskstore_d:
    case Intrinsic::x86_avx2_maskstore_q:
    case Intrinsic::x86_avx2_maskstore_d_256:
    case Intrinsic::x86_avx2_maskstore_q_256:
      is_store = true;
      break;
    default:
      return nullptr;
  }
  IRBuilder<> builder(&intrinsic);
  Value* pointer = intrinsic.getArgOperand(0);
  Value* signs = intrinsic.getArgOperand(1);
  Value* mask = builder.CreateICmpSLT(
      builder.CreateBitCast(signs, VectorType::getInteger(cast<VectorType>(signs->getType()))),
      Constant::getNullValue(VectorType::getInteger(cast<VectorType>(signs->getType()))));
  CallInst* generic;
  if (is_store)
    generic = builder.CreateMaskedStore(intrinsic.getArgOperand(2), pointer, Align(1), mask);
  else
    generic = builder.CreateMaskedLoad(intrinsic.getType(), pointer, Align(1), mask,
                                       Constant::getNullValue(intrinsic.getType()));
  intrinsic.replaceAllUsesWith(generic);
  intrinsic.eraseFromParent();
  return cast<IntrinsicInst>(generic);
}

void lower_masked_access(IntrinsicInst& intrinsic, Translator& translator, const UnmanagedPointers& unmanaged,
                         SmallVectorImpl<Instruction*>& lanes) {
  Masked m;
  if (!describe(intrinsic, m)) return;
  if (unmanaged.contains(m.lane_pointers ? m.lane_pointers : m.pointer)) return;
  if (m.packed || m.lane_pointers) return lower_to_lanes(m, translator, lanes);

  const uint64_t size_bytes =
      translator.function().getParent()->getDataLayout().getTypeStoreSize(m.vector).getFixedValue();
  BasicBlock* done = intrinsic.getParent()->splitBasicBlock(std::next(intrinsic.getIterator()), "spw.done");
  const auto probe = translator.probe(&intrinsic, m.pointer, size_bytes,
                                      may_cross_granule(size_bytes, m.alignment), m.is_store);
  BasicBlock* last = nullptr;
  Value* loaded = write_lane_loop(m, probe.miss, done, translator, lanes, &last);
  if (loaded) {
    PHINode* result = make_phi(*done, m.vector, 2, "spw.masked");
    intrinsic.replaceAllUsesWith(result);
    result->addIncoming(&intrinsic, intrinsic.getParent());
    result->addIncoming(loaded, last);
  }
  intrinsic.setArgOperand(m.pointer_operand, probe.raw);
}

}  // namespace spw::pass
