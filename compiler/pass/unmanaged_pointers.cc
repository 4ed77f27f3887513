#include "pass/unmanaged_pointers.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"
#include "pass/options.h"

namespace spw::pass {

using namespace llvm;

namespace {

// Functions outside the module whose result is memory of their own library, which is not instrumented.
constexpr const char* kReturnUnmanaged[] = {"__errno_location",
                                            "__cxa_allocate_exception",
                                            "__cxa_begin_catch",
                                            "__cxa_get_globals",
                                            "__ctype_b_loc",
                                            "__ctype_tolower_loc",
                                            "__ctype_toupper_loc",
                                            "__kmpc_omp_task_alloc",
                                            "__h_errno_location",
                                            "localeconv",
                                            "gettext",
                                            "strerror",
                                            "getenv"};

bool returns_unmanaged(const CallBase& call) {
  switch (call.getIntrinsicID()) {
    case Intrinsic::threadlocal_address:
    case Intrinsic::frameaddress:
    case Intrinsic::addressofreturnaddress:
    case Intrinsic::returnaddress:
    case Intrinsic::stacksave:
    case Intrinsic::eh_exceptionpointer:
      return true;
    default:
      break;
  }
  const Function* callee = call.getCalledFunction();
  return callee && callee->isDeclaration() && is_contained(kReturnUnmanaged, callee->getName());
}

// Adds what `value` is made of and returns true, or returns false: `value` is an origin.
bool look_through(const Value* value, SmallVectorImpl<const Value*>& parts) {
  if (const auto* gep = dyn_cast<GEPOperator>(value)) {
    parts.push_back(gep->getPointerOperand());
    return true;
  }
  if (const auto* phi = dyn_cast<PHINode>(value)) {
    parts.append(phi->value_op_begin(), phi->value_op_end());
    return true;
  }
  if (const auto* select = dyn_cast<SelectInst>(value)) {
    parts.push_back(select->getTrueValue());
    parts.push_back(select->getFalseValue());
    return true;
  }
  if (const auto* insert = dyn_cast<InsertElementInst>(value)) {
    parts.push_back(insert->getOperand(0));
    parts.push_back(insert->getOperand(1));
    return true;
  }
  if (const auto* shuffle = dyn_cast<ShuffleVectorInst>(value)) {
    parts.push_back(shuffle->getOperand(0));
    parts.push_back(shuffle->getOperand(1));
    return true;
  }
  if (isa<BitCastOperator, AddrSpaceCastOperator, FreezeInst>(value)) {
    parts.push_back(cast<User>(value)->getOperand(0));
    return true;
  }
  if (const auto* call = dyn_cast<CallBase>(value)) {
    const Intrinsic::ID id = call->getIntrinsicID();
    const bool same = id == Intrinsic::launder_invariant_group || id == Intrinsic::strip_invariant_group ||
                      id == Intrinsic::ptrmask || id == Intrinsic::ssa_copy;
    const Value* returned = same ? call->getArgOperand(0) : call->getReturnedArgOperand();
    if (!returned) return false;
    parts.push_back(returned);
    return true;
  }
  return false;
}

// The arguments of a call to `function` that `use` stands for, as (parameter, passed value). False: the use
// lets the function be called in ways not seen here.
bool arguments_of_use(const Function& function, const Use& use,
                      SmallVectorImpl<std::pair<const Argument*, const Value*>>& passed) {
  const auto* call = dyn_cast<CallBase>(use.getUser());
  if (!call) return false;
  if (call->isCallee(&use)) {
    if (call->getFunctionType() != function.getFunctionType()) return false;
    for (const Argument& argument : function.args())
      passed.emplace_back(&argument, call->getArgOperand(argument.getArgNo()));
    return true;
  }
  const Function* callee = call->getCalledFunction();
  if (!callee || !callee->isDeclaration()) return false;
  const unsigned operand = call->getArgOperandNo(&use);
  // __kmpc_fork_call(where, count, outlined, shared...): the library calls outlined(&thread, &team thread, shared...).
  if ((callee->getName() == "__kmpc_fork_call" || callee->getName() == "__kmpc_fork_teams") && operand == 2) {
    for (unsigned i = 2; i < function.arg_size(); ++i) {
      if (i + 1 >= call->arg_size()) return false;
      passed.emplace_back(function.getArg(i), call->getArgOperand(i + 1));
    }
    return true;
  }
  // __kmpc_omp_task_alloc(..., entry): the library calls entry(thread, task) with a task of its own.
  return callee->getName() == "__kmpc_omp_task_alloc" && operand == 5;
}

}  // namespace

UnmanagedPointers::UnmanagedPointers(Module& module) {
  if (opt_skip_unmanaged) find_unmanaged_arguments(module);
}

bool UnmanagedPointers::origin_is_unmanaged(const Value* origin) const {
  // An alias or an ifunc is a symbol too. Address space 256 and 257 are the segments %gs and %fs.
  if (isa<AllocaInst, GlobalValue, BlockAddress, ConstantPointerNull, ConstantAggregateZero, UndefValue>(
          origin))
    return true;
  if (origin->getType()->isPointerTy() && origin->getType()->getPointerAddressSpace() != 0) return true;
  if (const auto* argument = dyn_cast<Argument>(origin))
    return argument->hasByValAttr() || arguments_.contains(argument);
  if (const auto* call = dyn_cast<CallBase>(origin)) return returns_unmanaged(*call);
  if (const auto* load = dyn_cast<LoadInst>(origin)) {
    const MDNode* tbaa = load->getMetadata(LLVMContext::MD_tbaa);
    return tbaa && tbaa->isTBAAVtableAccess();
  }
  return false;
}

bool UnmanagedPointers::contains(const Value* pointer) const {
  if (!opt_skip_unmanaged) return false;
  SmallVector<const Value*, 8> work{pointer};
  SmallPtrSet<const Value*, 16> seen;
  while (!work.empty()) {
    const Value* value = work.pop_back_val();
    if (!seen.insert(value).second) continue;
    if (seen.size() > kLeavesMax) return false;
    if (!look_through(value, work) && !origin_is_unmanaged(value)) return false;
  }
  return true;
}

// Optimistic fixed point: all pointer arguments of functions whose every call is known start as unmanaged,
// and those that some call contradicts leave the set until none does.
void UnmanagedPointers::find_unmanaged_arguments(Module& module) {
  SmallVector<std::pair<const Argument*, const Value*>, 0> passed;
  for (const Function& function : module) {
    if (!function.hasLocalLinkage() || function.isDeclaration() || function.isVarArg()) continue;
    const size_t before = passed.size();
    const bool all_known =
        all_of(function.uses(), [&](const Use& use) { return arguments_of_use(function, use, passed); });
    if (!all_known) {
      passed.truncate(before);
      continue;
    }
    for (const Argument& argument : function.args())
      if (argument.getType()->isPointerTy()) arguments_.insert(&argument);
  }
  bool changed = true;
  while (changed) {
    changed = false;
    for (const auto& [argument, value] : passed)
      if (arguments_.contains(argument) && !contains(value)) changed |= arguments_.erase(argument);
  }
}

}  // namespace spw::pass
