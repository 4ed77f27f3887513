#include "pass/hints/hint_writer.h"

#include "abi/hints.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "pass/llvm_versions.h"
#include "pass/options.h"
#include "pass/runtime_symbols.h"

namespace spw::pass {

using namespace llvm;

HintWriter::HintWriter(Module& module)
    : module_(module),
      word_(Type::getInt64Ty(module.getContext())),
      pointer_(PointerType::getUnqual(module.getContext())),
      switch_(module.getContext()) {}

Value* HintWriter::says_no(IRBuilder<>& builder, Value* bits, bool is_store) {
  Value* piece = builder.CreateLShr(bits, SPW_HINT_SHIFT);
  Value* place =
      builder.CreateIntToPtr(builder.CreateAdd(piece, builder.getInt64(SPW_HINT_OFFSET)), pointer_);
  Value* hint = switch_.load_byte(builder, place, "spw.hint");
  return is_store ? builder.CreateICmpNE(hint, builder.getInt8(0))
                  : builder.CreateICmpSLT(hint, builder.getInt8(0));
}

void HintWriter::test(Instruction& before, Value* address, bool is_store, Address kind) {
  IRBuilder<> builder(when_no(before, address, is_store, kind));
  call_preserve_most(builder, is_store ? "__spw_hint_store_v1" : "__spw_hint_load_v1", builder.getVoidTy(),
                     {address});
}

void HintWriter::test_for_call(Instruction& call, Value* address, bool is_store, Address kind) {
  if (!opt_reach) return test(call, address, is_store, kind);
  IRBuilder<> builder(when_no(call, address, is_store, kind));
  call_preserve_most(builder, is_store ? "__spw_reach_store_v1" : "__spw_reach_load_v1", pointer_,
                     {address, builder.getInt64(SPW_FOR_A_CALL)});
}

// Where the hint of the address, which may be frozen, says no: the end of a block.
Instruction* HintWriter::when_no(Instruction& before, Value*& address, bool is_store, Address kind) {
  IRBuilder<> builder(&before);
  if (kind == Address::kGuess) address = builder.CreateFreeze(address);
  Value* bits = builder.CreatePtrToInt(address, word_);
  if (kind == Address::kGuess)
    bits = builder.CreateAnd(bits, builder.getInt64((uint64_t{1} << SPW_HINT_ADDRESS_BITS) - 1));
  Value* no = says_no(builder, bits, is_store);
  Instruction* end = SplitBlockAndInsertIfThen(no, &before, false, switch_.unlikely());
  end->setDebugLoc(before.getDebugLoc());
  return end;
}

Value* HintWriter::reach(Instruction& before, Value* address, int64_t low_bytes, uint64_t bytes,
                         bool is_store, unsigned site) {
  BasicBlock* head = before.getParent();
  Instruction* end = when_no(before, address, is_store, Address::kSure);
  IRBuilder<> builder(end);
  Value* low =
      low_bytes ? ptr_add(builder, address, builder.getInt64(static_cast<uint64_t>(low_bytes))) : address;
  Value* asked =
      call_preserve_most(builder, is_store ? "__spw_reach_store_v1" : "__spw_reach_load_v1", pointer_,
                         {low, builder.getInt64(bytes | uint64_t{site} << SPW_SITE_SHIFT)});
  if (low_bytes) asked = ptr_add(builder, asked, builder.getInt64(static_cast<uint64_t>(-low_bytes)));
  PHINode* raw = make_phi(*before.getParent(), pointer_, 2, "spw.raw");
  raw->setDebugLoc(before.getDebugLoc());
  raw->addIncoming(address, head);
  raw->addIncoming(asked, end->getParent());
  return raw;
}

void HintWriter::test_at_piece_entry(Instruction& before, Value* lead, int64_t stride_bytes, bool is_store) {
  IRBuilder<> builder(&before);
  const uint64_t stride = static_cast<uint64_t>(std::abs(stride_bytes));
  const uint64_t last_entry = SPW_HINT_PIECE_BYTES - stride;
  const bool is_power = isPowerOf2_64(stride);
  // With a power of two, one instruction tests the bits that tell one entry from another.
  Value* offset = builder.CreateAnd(builder.CreatePtrToInt(lead, word_),
                                    builder.getInt64(is_power ? last_entry : SPW_HINT_PIECE_BYTES - 1));
  Value* enters;
  if (stride_bytes > 0)
    enters = is_power ? builder.CreateICmpEQ(offset, builder.getInt64(0))
                      : builder.CreateICmpULT(offset, builder.getInt64(stride));
  else
    enters = is_power ? builder.CreateICmpEQ(offset, builder.getInt64(last_entry))
                      : builder.CreateICmpUGE(offset, builder.getInt64(last_entry));
  MDNode* weights = MDBuilder(module_.getContext())
                        .createBranchWeights(1, static_cast<uint32_t>(SPW_HINT_PIECE_BYTES / stride));
  Instruction* end = SplitBlockAndInsertIfThen(enters, &before, false, weights);
  test(*end, lead, is_store);
}

void HintWriter::call_c(IRBuilder<>& builder, const char* name, Value* address, Value* bytes, bool is_store) {
  FunctionCallee callee = module_.getOrInsertFunction(
      name, FunctionType::get(builder.getVoidTy(), {pointer_, word_, word_}, false));
  builder.CreateCall(callee, {address, bytes, builder.getInt64(is_store)})->setDoesNotThrow();
}

void HintWriter::call_range(IRBuilder<>& builder, Value* address, Value* bytes, bool is_store) {
  call_c(builder, "__spw_hint_range_v1", address, bytes, is_store);
}

void HintWriter::call_stream(IRBuilder<>& builder, Value* address, Value* bytes, bool is_store) {
  call_c(builder, "__spw_hint_stream_v1", address, bytes, is_store);
}

void HintWriter::require_version() {
  require_symbol(module_, SPW_STRING(SPW_HINTS_VERSION_SYMBOL), "spw.hints_version");
}

}  // namespace spw::pass
