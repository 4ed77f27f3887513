#include "pass/translator.h"

#include <cstddef>

#include "abi/abi.h"
#include "llvm/IR/MDBuilder.h"
#include "pass/llvm_versions.h"
#include "pass/options.h"

namespace spw::pass {

using namespace llvm;

namespace {

Value* load_field(IRBuilder<>& builder, Type* type, Value* base, uint64_t offset) {
  Value* address =
      offset ? builder.CreateInBoundsGEP(builder.getInt8Ty(), base, builder.getInt64(offset)) : base;
  return builder.CreateAlignedLoad(type, address, Align(type->getIntegerBitWidth() / 8));
}

}  // namespace

Value* is_managed(IRBuilder<>& builder, Value* bits) {
  return builder.CreateICmpEQ(builder.CreateLShr(bits, SPW_MANAGED_SHIFT), builder.getInt64(SPW_MANAGED_TAG),
                              "spw.managed");
}

MDNode* likely(LLVMContext& context) { return MDBuilder(context).createBranchWeights((1u << 20) - 1, 1); }

Translator::Translator(Function& function, RuntimeSymbols& symbols)
    : function_(function), symbols_(symbols) {}

AllocaInst* Translator::slot(Type* type) {
  AllocaInst*& slot = slots_[type];
  if (!slot) slot = make_alloca(function_, type, "spw.slot");
  return slot;
}

void Translator::count_hit(IRBuilder<>& builder) {
  Value* counter =
      ptr_add(builder, symbols_.thread(builder), builder.getInt64(offsetof(__spw_thread, direct_hits)));
  Value* hits = builder.CreateLoad(builder.getInt64Ty(), counter);
  builder.CreateStore(builder.CreateAdd(hits, builder.getInt64(1)), counter);
}

Translator::Lookup Translator::lookup(BasicBlock* from, BasicBlock* unmanaged, Value* bits,
                                      uint64_t size_bytes, bool may_cross, bool is_store,
                                      const DebugLoc& place) {
  LLVMContext& context = function_.getContext();
  BasicBlock* check = BasicBlock::Create(context, "spw.check", &function_, unmanaged);
  BasicBlock* hit = BasicBlock::Create(context, "spw.hit", &function_, unmanaged);
  BasicBlock* miss = BasicBlock::Create(context, "spw.miss", &function_);

  IRBuilder<> builder(from);
  builder.SetCurrentDebugLocation(place);
  builder.CreateCondBr(is_managed(builder, bits), check, unmanaged);

  // (address >> 12 << 4) & mask is (address >> 8) & mask: the mask's low four bits are clear.
  builder.SetInsertPoint(check);
  constexpr unsigned kEntryShift = 4;
  static_assert(sizeof(__spw_satc_entry) == 1u << kEntryShift);
  Value* thread = symbols_.thread(builder);
  Value* mask = load_field(builder, builder.getInt64Ty(), thread, offsetof(__spw_thread, direct_mask_bytes));
  Value* table = builder.CreateAlignedLoad(builder.getPtrTy(), thread, Align(8));
  Value* index = builder.CreateAnd(builder.CreateLShr(bits, SPW_GRANULE_SHIFT - kEntryShift), mask);
  Value* entry = ptr_add(builder, table, index, "spw.entry");
  Value* last = may_cross ? builder.CreateAdd(bits, builder.getInt64(size_bytes - 1)) : bits;
  Value* granule = builder.CreateTrunc(builder.CreateLShr(last, SPW_GRANULE_SHIFT), builder.getInt32Ty());
  const uint64_t tag_offset =
      is_store ? offsetof(__spw_satc_entry, write_tag) : offsetof(__spw_satc_entry, read_tag);
  Value* tag = load_field(builder, builder.getInt32Ty(), entry, tag_offset);
  builder.CreateCondBr(builder.CreateICmpEQ(tag, granule), hit, miss, likely(context));

  builder.SetInsertPoint(hit);
  Value* delta = load_field(builder, builder.getInt64Ty(), entry, offsetof(__spw_satc_entry, delta));
  if (opt_count_hits) count_hit(builder);
  return {hit, miss, delta, entry, granule};
}

Translator::Probe Translator::probe(Instruction* before, Value* address, uint64_t size_bytes, bool may_cross,
                                    bool is_store, Place where) {
  BasicBlock* head = before->getParent();
  BasicBlock* use = head->splitBasicBlock(before->getIterator(), "spw.use");
  head->getTerminator()->eraseFromParent();
  const DebugLoc& place = before->getDebugLoc();
  IRBuilder<> builder(head);
  builder.SetCurrentDebugLocation(place);
  Value* bits = builder.CreatePtrToInt(address, builder.getInt64Ty(), "spw.address");
  PHINode* raw = make_phi(*use, builder.getPtrTy(), 3, "spw.raw");
  raw->setDebugLoc(place);
  raw->addIncoming(address, head);
  if (where == Place::kRare) {
    BasicBlock* miss = BasicBlock::Create(function_.getContext(), "spw.miss", &function_);
    builder.CreateCondBr(is_managed(builder, bits), miss, use);
    return {miss, use, raw};
  }
  const Lookup found = lookup(head, use, bits, size_bytes, may_cross, is_store, place);
  builder.SetInsertPoint(found.hit);
  raw->addIncoming(ptr_add(builder, address, found.delta), found.hit);
  builder.CreateBr(use);
  return {found.miss, use, raw};
}

Value* Translator::translate_range(const Range& range, BasicBlock** block, BasicBlock* crossing,
                                   const DebugLoc& place, Value** may_store) {
  LLVMContext& context = function_.getContext();
  BasicBlock* from = *block;
  BasicBlock* found = BasicBlock::Create(context, "spw.found", &function_, from->getNextNode());
  const Lookup known =
      lookup(from, found, range.bits, range.span_bytes, range.may_cross, range.is_store, place);
  IRBuilder<> builder(known.hit);
  builder.SetCurrentDebugLocation(place);
  Value* hit_may_store = builder.getTrue();
  if (may_store && !range.is_store)
    hit_may_store = builder.CreateICmpEQ(
        load_field(builder, builder.getInt32Ty(), known.entry, offsetof(__spw_satc_entry, write_tag)),
        known.granule);
  builder.CreateBr(found);

  builder.SetInsertPoint(known.miss);
  Value* spanned = nullptr;
  BasicBlock* after_span = nullptr;
  if (range.may_cross) {
    BasicBlock* within = BasicBlock::Create(context, "spw.within", &function_);
    Value* offset = builder.CreateAnd(range.bits, builder.getInt64(SPW_GRANULE_BYTES - 1));
    Value* crosses = builder.CreateICmpUGT(offset, builder.getInt64(SPW_GRANULE_BYTES - range.span_bytes));
    BasicBlock* apart = range.may_span ? BasicBlock::Create(context, "spw.apart", &function_) : crossing;
    builder.CreateCondBr(crosses, apart, within);
    if (range.may_span) {
      builder.SetInsertPoint(apart);
      Value* raw = symbols_.call_span(builder, range.low, range.span_bytes, range.is_store);
      spanned = builder.CreateSub(builder.CreatePtrToInt(raw, builder.getInt64Ty()), range.bits);
      builder.CreateCondBr(builder.CreateIsNull(raw), crossing, found);
      after_span = apart;
    }
    builder.SetInsertPoint(within);
  }
  // It does not cross, so the runtime need not know of more than the widest access.
  const uint64_t shown = std::min<uint64_t>(range.span_bytes, SPW_ACCESS_BYTES_MAX);
  Value* raw = range.is_store ? symbols_.call_store(builder, range.low, shown)
                              : symbols_.call_load(builder, range.low, shown);
  Value* missed = builder.CreateSub(builder.CreatePtrToInt(raw, builder.getInt64Ty()), range.bits);
  BasicBlock* after_call = builder.GetInsertBlock();
  builder.CreateBr(found);

  PHINode* delta = PHINode::Create(builder.getInt64Ty(), 3, "spw.delta", found);
  delta->addIncoming(builder.getInt64(0), from);
  delta->addIncoming(known.delta, known.hit);
  delta->addIncoming(missed, after_call);
  if (spanned) delta->addIncoming(spanned, after_span);
  if (may_store) {
    PHINode* open = PHINode::Create(builder.getInt1Ty(), 3, "spw.may_store", found);
    open->addIncoming(builder.getTrue(), from);
    open->addIncoming(hit_may_store, known.hit);
    open->addIncoming(builder.getInt1(range.is_store), after_call);
    if (spanned) open->addIncoming(builder.getInt1(range.is_store), after_span);
    *may_store = open;
  }
  *block = found;
  return delta;
}

void Translator::fill_load_miss(const Access& access, const Probe& probe) {
  IRBuilder<> builder(probe.miss);
  builder.SetCurrentDebugLocation(access.instruction->getDebugLoc());
  Value* raw;
  if (access.size_bytes <= SPW_ACCESS_BYTES_MAX) {
    raw = symbols_.call_load(builder, access.address(), access.size_bytes);
  } else {
    raw = slot(access.instruction->getType());
    symbols_.call_memcpy(builder, raw, access.address(), builder.getInt64(access.size_bytes));
  }
  builder.CreateBr(probe.use);
  probe.raw->addIncoming(raw, probe.miss);
}

// A store that can cross goes through memory and skips the plain store; any other gets an address to store to.
void Translator::fill_store_miss(const Access& access, const Probe& probe) {
  IRBuilder<> builder(probe.miss);
  builder.SetCurrentDebugLocation(access.instruction->getDebugLoc());
  const bool too_wide = access.size_bytes > SPW_ACCESS_BYTES_MAX;
  if (!access.may_cross && !too_wide) {
    probe.raw->addIncoming(symbols_.call_store(builder, access.address(), access.size_bytes), probe.miss);
    builder.CreateBr(probe.use);
    return;
  }
  Value* value = cast<StoreInst>(access.instruction)->getValueOperand();
  AllocaInst* bytes = slot(value->getType());
  builder.CreateStore(value, bytes);
  if (too_wide)
    symbols_.call_memcpy(builder, access.address(), bytes, builder.getInt64(access.size_bytes));
  else
    symbols_.call_store_across(builder, access.address(), bytes, access.size_bytes);
  BasicBlock* done = probe.use->splitBasicBlock(std::next(access.instruction->getIterator()), "spw.done");
  builder.CreateBr(done);
}

void Translator::translate(const Access& access, Place where) {
  const Probe probe_blocks = probe(access.instruction, access.address(), access.size_bytes, access.may_cross,
                                   access.is_store, where);
  if (access.is_store)
    fill_store_miss(access, probe_blocks);
  else
    fill_load_miss(access, probe_blocks);
  access.set_address(probe_blocks.raw);
  forget_invariance(*access.instruction);
}

}  // namespace spw::pass
