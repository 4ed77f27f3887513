#include "pass/durable/durable_module.h"

#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "pass/access.h"
#include "pass/durable/lane_stores.h"
#include "pass/durable/library_stores.h"
#include "pass/durable/merge_marks.h"
#include "pass/durable/store_marks.h"
#include "pass/eligible_functions.h"
#include "pass/masked_accesses.h"
#include "pass/options.h"
#include "pass/unmanaged_pointers.h"

namespace spw::pass {

using namespace llvm;

namespace {

class FunctionMarker {
 public:
  FunctionMarker(Function& function, StoreMarks& marks, const UnmanagedPointers& unmanaged)
      : function_(function), marks_(marks), unmanaged_(unmanaged), remarks_(&function) {}

  // Whether anything was marked.
  bool run() {
    for (Instruction& instruction : make_early_inc_range(instructions(function_))) collect(instruction);
    if (!found_) return false;
    if (opt_durable_merge && !function_.hasOptNone()) merge_store_marks(function_);
    // Splitting blocks comes last, and from the end.
    for (CallBase* call : reverse(library_)) mark_library_store(*call, marks_);
    for (IntrinsicInst* store : reverse(lanes_)) mark_lane_store(*store, marks_);
    // It reads the range and may call.
    function_.removeFnAttr(Attribute::Memory);
    function_.removeFnAttr(Attribute::Speculatable);
    return true;
  }

 private:
  void collect(Instruction& instruction) {
    const DataLayout& layout = function_.getParent()->getDataLayout();
    if (const auto access = access_of(instruction, layout)) {
      if (access->is_store) mark(instruction, access->address(), access->size_bytes);
    } else if (auto* memory = dyn_cast<AnyMemIntrinsic>(&instruction)) {
      collect_memory_intrinsic(*memory);
    } else if (auto* intrinsic = dyn_cast<IntrinsicInst>(&instruction)) {
      collect_intrinsic(*intrinsic);
    } else if (auto* call = dyn_cast<CallBase>(&instruction)) {
      if (call->isInlineAsm())
        collect_assembly(*call);
      else if (is_library_store(*call, unmanaged_))
        add(library_, call);
    }
  }

  bool may_be_persistent(const Value* address) const {
    const Type* type = address->getType()->getScalarType();
    return type->getPointerAddressSpace() == 0 && !unmanaged_.contains(address);
  }

  void mark(Instruction& before, Value* address, uint64_t size_bytes) {
    if (!may_be_persistent(address)) return;
    IRBuilder<> builder(&before);
    marks_.put(builder, address, builder.getInt64(size_bytes));
    found_ = true;
  }

  void collect_memory_intrinsic(AnyMemIntrinsic& memory) {
    const auto* constant = dyn_cast<ConstantInt>(memory.getLength());
    if (!may_be_persistent(memory.getRawDest()) || (constant && constant->isZero())) return;
    IRBuilder<> builder(&memory);
    marks_.put(builder, memory.getRawDest(),
               builder.CreateZExtOrTrunc(memory.getLength(), builder.getInt64Ty()));
    found_ = true;
  }

  void collect_intrinsic(IntrinsicInst& intrinsic) {
    IntrinsicInst* generic = generic_masked_access(intrinsic);
    IntrinsicInst& store = generic ? *generic : intrinsic;
    if (is_lane_store(store)) {
      if (may_be_persistent(address_of_lane_store(store))) add(lanes_, &store);
      return;
    }
    if (store.isAssumeLikeIntrinsic() || !store.mayWriteToMemory() || is_harmless(store)) return;
    for (const Value* argument : store.args())
      if (argument->getType()->isPtrOrPtrVectorTy() && may_be_persistent(argument))
        return remark(store, "UnannouncedIntrinsic",
                      "this intrinsic may store to persistent memory; it is not announced");
  }

  // Those that are said to write memory so that nothing is moved across them.
  static bool is_harmless(const IntrinsicInst& intrinsic) {
    switch (intrinsic.getIntrinsicID()) {
      case Intrinsic::prefetch:
      case Intrinsic::masked_load:
      case Intrinsic::masked_gather:
      case Intrinsic::masked_expandload:
      case Intrinsic::vaend:
        return true;
      default:
        return false;
    }
  }

  // Operands that are written are pointers whose element type is given. Of several, all but the last have been
  // announced before the last is, so they are announced again behind it.
  void collect_assembly(CallBase& call) {
    SmallVector<std::pair<Value*, uint64_t>, 2> results;
    const DataLayout& layout = function_.getParent()->getDataLayout();
    unsigned argument = 0;
    for (const auto& constraint : cast<InlineAsm>(call.getCalledOperand())->ParseConstraints()) {
      if (!constraint.hasArg()) continue;
      const unsigned operand = argument++;
      Type* type = call.getParamElementType(operand);
      if (constraint.Type != InlineAsm::isOutput || !type) continue;
      Value* address = call.getArgOperand(operand);
      if (may_be_persistent(address)) results.emplace_back(address, layout.getTypeStoreSize(type));
    }
    for (const auto& [address, bytes] : results) mark(call, address, bytes);
    if (Instruction* behind = call.getNextNode(); behind && results.size() > 1)
      for (const auto& [address, bytes] : results) mark(*behind, address, bytes);
    if (!call.mayWriteToMemory()) return;
    for (unsigned i = 0; i < call.arg_size(); ++i)
      if (const Value* pointer = call.getArgOperand(i);
          pointer->getType()->isPointerTy() && !call.getParamElementType(i) && may_be_persistent(pointer))
        return remark(
            call, "UnannouncedAssembly",
            "inline assembly gets a pointer that may be to persistent memory; what it stores is not "
            "announced");
  }

  template <typename T>
  void add(SmallVectorImpl<T*>& list, T* call) {
    list.push_back(call);
    found_ = true;
  }

  void remark(const Instruction& instruction, const char* name, const char* text) {
    remarks_.emit([&] { return OptimizationRemarkMissed("spillway", name, &instruction) << text; });
  }

  Function& function_;
  StoreMarks& marks_;
  const UnmanagedPointers& unmanaged_;
  OptimizationRemarkEmitter remarks_;
  SmallVector<CallBase*, 0> library_;
  SmallVector<IntrinsicInst*, 0> lanes_;
  bool found_ = false;
};

}  // namespace

void mark_durable_stores(Module& module, FunctionAnalysisManager& analyses) {
  StoreMarks marks(module);
  const UnmanagedPointers unmanaged(module);
  for (Function* function : eligible_functions(module))
    if (FunctionMarker(*function, marks, unmanaged).run())
      analyses.invalidate(*function, PreservedAnalyses::none());
}

void announce_durable_stores(Module& module) { StoreMarks(module).write_store_tests(); }

}  // namespace spw::pass
