#include "pass/durable/store_marks.h"

#include "abi/durable.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "pass/runtime_symbols.h"

namespace spw::pass {

using namespace llvm;

namespace {

constexpr const char* kMark = "spw.durable.mark";
constexpr const char* kRange = "__spw_durable_range_v1";
constexpr const char* kAnnounce = "__spw_durable_store_v1";
constexpr uint32_t kLikelyWeight = 1u << 20;

static_assert(offsetof(spw_durable_range, first) == 0 && offsetof(spw_durable_range, bytes) == 8);

}  // namespace

bool is_store_mark(const Instruction& instruction) {
  const auto* call = dyn_cast<CallInst>(&instruction);
  const Function* callee = call ? call->getCalledFunction() : nullptr;
  return callee && callee->getName() == kMark;
}

StoreMarks::StoreMarks(Module& module)
    : module_(module),
      word_(Type::getInt64Ty(module.getContext())),
      unlikely_(MDBuilder(module.getContext()).createBranchWeights(1, kLikelyWeight)) {}

CallInst* StoreMarks::put(IRBuilder<>& builder, Value* address, Value* bytes) {
  FunctionCallee mark = module_.getOrInsertFunction(
      kMark, FunctionType::get(builder.getVoidTy(), {builder.getPtrTy(), word_}, false));
  auto* function = cast<Function>(mark.getCallee());
  function->setDoesNotThrow();
  function->setWillReturn();
  function->setOnlyAccessesInaccessibleMemory();
  return builder.CreateCall(mark, {address, bytes});
}

Value* StoreMarks::load_word(IRBuilder<>& builder, unsigned field) {
  auto* type = StructType::get(word_, word_);
  Value* place = builder.CreateStructGEP(type, module_.getOrInsertGlobal(kRange, type), field);
  LoadInst* word = builder.CreateAlignedLoad(word_, place, Align(8), field ? "spw.range" : "spw.first");
  word->setMetadata(LLVMContext::MD_nosanitize, MDNode::get(builder.getContext(), {}));
  return word;
}

Value* StoreMarks::in_range(IRBuilder<>& builder, Value* address, uint64_t span_bytes) {
  Value* distance = builder.CreateSub(builder.CreatePtrToInt(address, word_), load_word(builder, 0));
  Value* bytes = load_word(builder, 1);
  if (span_bytes > 1) {
    Value* before = builder.getInt64(span_bytes - 1);
    distance = builder.CreateAdd(distance, before);
    bytes = builder.CreateAdd(bytes, before);
  }
  return builder.CreateICmpULT(distance, bytes, "spw.durable");
}

Value* StoreMarks::in_range_each(IRBuilder<>& builder, Value* addresses) {
  const ElementCount lanes = cast<VectorType>(addresses->getType())->getElementCount();
  Value* bits = builder.CreatePtrToInt(addresses, VectorType::get(word_, lanes));
  Value* distances = builder.CreateSub(bits, builder.CreateVectorSplat(lanes, load_word(builder, 0)));
  return builder.CreateICmpULT(distances, builder.CreateVectorSplat(lanes, load_word(builder, 1)),
                               "spw.durable");
}

void StoreMarks::write_store_test(CallInst& mark) {
  IRBuilder<> builder(&mark);
  Value* address = mark.getArgOperand(0);
  Value* bytes = mark.getArgOperand(1);
  // Frozen, so that loop strength reduction does not give the test an induction variable of its own; and a copy of no
  // bytes may have an address that is none.
  Value* frozen = builder.CreateFreeze(address);
  if (!isa<ConstantInt>(bytes)) address = frozen;
  Value* hit = in_range(builder, frozen);
  Instruction* end = SplitBlockAndInsertIfThen(hit, &mark, false, unlikely_);
  builder.SetInsertPoint(end);
  builder.SetCurrentDebugLocation(mark.getDebugLoc());
  call_preserve_most(builder, kAnnounce, builder.getVoidTy(), {address, bytes});
  mark.eraseFromParent();
}

void StoreMarks::write_store_tests() {
  Function* mark = module_.getFunction(kMark);
  if (!mark) return;
  SmallPtrSet<Function*, 16> functions;
  for (User* user : mark->users()) functions.insert(cast<Instruction>(user)->getFunction());
  for (Function* function : functions) {
    SmallVector<CallInst*, 0> marks;
    for (Instruction& instruction : instructions(*function))
      if (is_store_mark(instruction)) marks.push_back(cast<CallInst>(&instruction));
    // Last to first: splitting a block then moves only what lies behind, and the whole stays linear.
    for (CallInst* each : reverse(marks)) write_store_test(*each);
  }
  mark->eraseFromParent();
}

}  // namespace spw::pass
