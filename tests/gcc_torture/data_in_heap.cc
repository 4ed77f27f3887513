// An LLVM plugin for tests: moves the variables of a program into the heap, where all of its data is managed then.
//
// Programs that test compilers keep what they work on in globals and on the stack, neither of which is managed. So at
// the start of the pipeline, before the optimiser and our pass:
//
//  - each global variable that is defined here becomes an object that a constructor allocates before all others and
//    gives its initial value; what used the variable loads its address from `NAME.at`. Thread-local ones, those of a
//    section, and those that have an alias stay; so do constants without pointers;
//  - each local variable becomes an object that is allocated where it was declared, and freed at the function's return
//    unless its size or number is known at run time only. With optimisation this is what does not fit registers: the
//    others are promoted before.
//
// What is larger than its alignment is put across the border of two blocks, where accesses are handed to the runtime.
//
// Invariant: a variable that is moved is referred to by instructions and by initial values of moved ones alone.
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/Passes/PassBuilder.h"
#if __has_include("llvm/Plugins/PassPlugin.h")  // LLVM 22
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace {

using namespace llvm;

constexpr uint64_t kAlignmentMin = 16;
constexpr uint64_t kBlockBytes = 4096;     // the smallest that a block may be
constexpr int kConstructorPriority = 101;  // the first of a program's; smaller ones are the C library's

FunctionCallee allocator(Module& module) {
  auto* size = module.getDataLayout().getIntPtrType(module.getContext());
  return module.getOrInsertFunction("aligned_alloc", PointerType::getUnqual(module.getContext()), size, size);
}

FunctionCallee deallocator(Module& module) {
  return module.getOrInsertFunction("free", Type::getVoidTy(module.getContext()),
                                    PointerType::getUnqual(module.getContext()));
}

struct Allocated {
  Value* memory;  // to be freed
  Value* object;
};

// The middle of an object that is larger than its alignment lies between two blocks.
Allocated allocate(IRBuilder<>& builder, uint64_t bytes, Value* count, Align least) {
  const uint64_t alignment = std::max<uint64_t>(least.value(), kAlignmentMin);
  const uint64_t half =
      bytes <= alignment ? 0 : alignDown(std::min(bytes / 2, kBlockBytes / 2), least.value());
  const uint64_t aligned_to = half ? std::max(alignment, kBlockBytes) : alignment;
  const uint64_t before = half ? aligned_to - half : 0;
  // At least a byte, since what has none has an address too; a multiple of the alignment, as aligned_alloc wants it.
  Value* size = builder.CreateMul(count, builder.getInt64(bytes));
  Value* needed = builder.CreateAdd(size, builder.getInt64(before + aligned_to));
  Value* rounded = builder.CreateAnd(needed, builder.getInt64(-aligned_to));
  Module& module = *builder.GetInsertBlock()->getModule();
  Value* memory = builder.CreateCall(allocator(module), {builder.getInt64(aligned_to), rounded});
  return {memory, builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), memory, before)};
}

class GlobalMover {
 public:
  explicit GlobalMover(Module& module) : module_(module), layout_(module.getDataLayout()) {}

  void run() {
    choose();
    if (moved_.empty()) return;
    write_constructor();
    SmallVector<Constant*> constants(moved_.begin(), moved_.end());
    convertUsersOfConstantsToInstructions(constants);
    for (GlobalVariable* variable : moved_) redirect(*variable);
    for (GlobalVariable* variable : moved_) variable->setInitializer(nullptr);
    for (GlobalVariable* variable : moved_) {
      variable->removeDeadConstantUsers();
      if (variable->use_empty()) variable->eraseFromParent();
    }
  }

 private:
  static bool has_pointer(const Constant& value) {
    if (isa<GlobalValue, BlockAddress>(value)) return true;
    return any_of(value.operands(), [](const Use& use) {
      const auto* operand = dyn_cast<Constant>(use.get());
      return operand && has_pointer(*operand);
    });
  }

  static bool may_move(const GlobalVariable& variable) {
    if (!variable.hasInitializer() || variable.isThreadLocal() || variable.hasSection() ||
        variable.hasComdat())
      return false;
    if (variable.getName().starts_with("llvm.") || variable.hasAvailableExternallyLinkage()) return false;
    return !variable.isConstant() || has_pointer(*variable.getInitializer());
  }

  // Whether all that refers to the value are instructions, and initial values of variables that are moved.
  bool users_allow(const Constant& value) const {
    return all_of(value.users(), [&](const User* user) {
      if (isa<Instruction>(user)) return true;
      if (const auto* variable = dyn_cast<GlobalVariable>(user))
        return moved_.contains(const_cast<GlobalVariable*>(variable));
      return !isa<GlobalValue, BlockAddress>(user) && isa<Constant>(user) &&
             users_allow(*cast<Constant>(user));
    });
  }

  void choose() {
    for (GlobalVariable& variable : module_.globals())
      if (may_move(variable)) moved_.insert(&variable);
    while (moved_.remove_if([&](GlobalVariable* variable) { return !users_allow(*variable); })) {
    }
  }

  void write_constructor() {
    auto* pointer = PointerType::getUnqual(module_.getContext());
    auto* type = FunctionType::get(Type::getVoidTy(module_.getContext()), false);
    auto* function = Function::Create(type, GlobalValue::InternalLinkage, "move_data_to_heap", module_);
    IRBuilder<> builder(BasicBlock::Create(module_.getContext(), "entry", function));
    for (GlobalVariable* variable : moved_) {
      auto* at = new GlobalVariable(module_, pointer, false, GlobalValue::InternalLinkage,
                                    ConstantPointerNull::get(pointer), variable->getName() + ".at");
      at_[variable] = at;
      const uint64_t bytes = layout_.getTypeAllocSize(variable->getValueType());
      const Align alignment =
          layout_.getValueOrABITypeAlignment(variable->getAlign(), variable->getValueType());
      builder.CreateStore(allocate(builder, bytes, builder.getInt64(1), alignment).object, at);
    }
    for (GlobalVariable* variable : moved_)
      initialise(builder, builder.CreateLoad(pointer, at_[variable]), *variable->getInitializer());
    builder.CreateRetVoid();
    appendToGlobalCtors(module_, function, kConstructorPriority);
  }

  void initialise(IRBuilder<>& builder, Value* place, Constant& value) {
    const uint64_t bytes = layout_.getTypeAllocSize(value.getType());
    if (bytes == 0 || isa<UndefValue>(value)) return;
    if (value.isNullValue()) {
      builder.CreateMemSet(place, builder.getInt8(0), bytes, MaybeAlign());
    } else if (!has_pointer(value)) {
      auto* initial =
          new GlobalVariable(module_, value.getType(), true, GlobalValue::PrivateLinkage, &value, "initial");
      builder.CreateMemCpy(place, MaybeAlign(), initial, MaybeAlign(), bytes);
    } else if (isa<ConstantStruct, ConstantArray>(value)) {
      for (unsigned i = 0; i < value.getNumOperands(); ++i) {
        Value* element = builder.CreateConstInBoundsGEP2_32(value.getType(), place, 0, i);
        initialise(builder, element, *cast<Constant>(value.getOperand(i)));
      }
    } else {
      builder.CreateAlignedStore(&value, place, Align(1));
    }
  }

  // A phi reads its value at the end of the block it comes from.
  void redirect(GlobalVariable& variable) {
    for (Use& use : make_early_inc_range(variable.uses())) {
      auto* user = dyn_cast<Instruction>(use.getUser());
      if (!user) continue;
      auto* phi = dyn_cast<PHINode>(user);
      Instruction* before = phi ? phi->getIncomingBlock(use)->getTerminator() : user;
      auto* load = new LoadInst(variable.getType(), at_[&variable], "", before->getIterator());
      if (phi)
        phi->setIncomingValueForBlock(phi->getIncomingBlock(use), load);
      else
        use.set(load);
    }
  }

  Module& module_;
  const DataLayout& layout_;
  SetVector<GlobalVariable*> moved_;
  DenseMap<GlobalVariable*, GlobalVariable*> at_;
};

bool is_lifetime(const User* user) {
  const auto* intrinsic = dyn_cast<IntrinsicInst>(user);
  return intrinsic && intrinsic->isLifetimeStartOrEnd();
}

void move_locals(Function& function) {
  SmallVector<AllocaInst*> variables;
  SmallVector<ReturnInst*> returns;
  for (BasicBlock& block : function)
    for (Instruction& instruction : block) {
      auto* alloca = dyn_cast<AllocaInst>(&instruction);
      if (alloca && !alloca->isSwiftError() && !alloca->isUsedWithInAlloca()) variables.push_back(alloca);
      if (auto* end = dyn_cast<ReturnInst>(&instruction)) returns.push_back(end);
    }
  for (AllocaInst* variable : variables) {
    for (User* user : make_early_inc_range(variable->users()))
      if (is_lifetime(user)) cast<Instruction>(user)->eraseFromParent();
    IRBuilder<> builder(variable);
    Value* count = builder.CreateZExtOrTrunc(variable->getArraySize(), builder.getInt64Ty());
    const uint64_t bytes =
        function.getParent()->getDataLayout().getTypeAllocSize(variable->getAllocatedType());
    const Allocated allocated = allocate(builder, bytes, count, variable->getAlign());
    if (variable->isStaticAlloca())
      for (ReturnInst* end : returns)
        IRBuilder<>(end).CreateCall(deallocator(*function.getParent()), {allocated.memory});
    allocated.object->takeName(variable);
    variable->replaceAllUsesWith(allocated.object);
    variable->eraseFromParent();
  }
}

struct DataInHeapPass : PassInfoMixin<DataInHeapPass> {
  static bool isRequired() {
    return true;
  }  // NOLINT(readability-identifier-naming): LLVM's name; at -O0, too

  PreservedAnalyses run(Module& module, ModuleAnalysisManager&) {
    for (Function& function : module)
      if (!function.isDeclaration() && !function.hasFnAttribute(Attribute::Naked)) move_locals(function);
    GlobalMover(module).run();
    return PreservedAnalyses::none();
  }
};

void register_callbacks(PassBuilder& builder) {
  builder.registerPipelineStartEPCallback([](ModulePassManager& passes, OptimizationLevel level, auto...) {
    if (level != OptimizationLevel::O0)
      passes.addPass(createModuleToFunctionPassAdaptor(SROAPass(SROAOptions::ModifyCFG)));
    passes.addPass(DataInHeapPass());
  });
}

}  // namespace

extern "C" LLVM_ATTRIBUTE_WEAK __attribute__((visibility("default"))) PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "data-in-heap", "1", register_callbacks};
}
