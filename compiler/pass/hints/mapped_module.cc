#include "pass/hints/mapped_module.h"

#include "abi/hints.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "pass/access.h"
#include "pass/eligible_functions.h"
#include "pass/hints/hint_plan.h"
#include "pass/hints/hint_writer.h"
#include "pass/hints/stream_loops.h"
#include "pass/llvm_versions.h"
#include "pass/options.h"
#include "pass/two_versions.h"
#include "pass/unmanaged_pointers.h"

namespace spw::pass {

using namespace llvm;

namespace {

// A function without loops and with no more hints than this has only
// the hinted version: testing the switch costs as much.
constexpr size_t kHintsWithoutVersionsMax = 2;
// A memory intrinsic of more bytes has its last byte tested too.
constexpr uint64_t kOneHintBytesMax = 64;

// Functions of the C library that read or write as many bytes at a pointer as an argument says. (Most calls of memcpy,
// memmove and memset are intrinsics.)
struct MemoryFunction {
  const char* name;
  unsigned pointer;
  unsigned bytes;
  bool is_store;
};
constexpr MemoryFunction kMemoryFunctions[] = {
    {"memcmp", 0, 2, false}, {"memcmp", 1, 2, false},  {"bcmp", 0, 2, false},   {"bcmp", 1, 2, false},
    {"memcpy", 0, 2, true},  {"memcpy", 1, 2, false},  {"memmove", 0, 2, true}, {"memmove", 1, 2, false},
    {"mempcpy", 0, 2, true}, {"mempcpy", 1, 2, false}, {"memset", 0, 2, true},
};

class FunctionHints {
 public:
  FunctionHints(Function& function, HintWriter& writer, const UnmanagedPointers& unmanaged)
      : function_(function), writer_(writer), unmanaged_(unmanaged) {}

  void run(FunctionAnalysisManager& analyses) {
    collect();
    if (accesses_.empty() && ranges_.empty()) return;
    std::optional<TwoVersions> versions;
    if (wants_versions(analyses)) prepare_versions(analyses, versions);
    write_hints(analyses, versions ? &*versions : nullptr);
    if (versions) versions->connect(writer_.version_switch(), writer_.version_switch().rather_unlikely());
    // It reads the hint table and may call.
    function_.removeFnAttr(Attribute::Memory);
    function_.removeFnAttr(Attribute::Speculatable);
  }

 private:
  // What a memory intrinsic reads or writes.
  struct Range {
    Instruction* instruction;
    Value* address;
    Value* bytes;
    bool is_store;
  };

  void collect() {
    const DataLayout& layout = function_.getParent()->getDataLayout();
    for (Instruction& instruction : instructions(function_)) {
      if (const auto access = access_of(instruction, layout)) {
        if (!unmanaged_.contains(access->address())) accesses_.push_back(*access);
      } else if (const auto copied = short_copy_bytes(instruction)) {
        add_short_copy(instruction, *copied);
      } else if (auto* memory = dyn_cast<MemIntrinsic>(&instruction)) {
        add_range(*memory, memory->getRawDest(), memory->getLength(), true);
        if (auto* transfer = dyn_cast<MemTransferInst>(memory))
          add_range(*memory, transfer->getRawSource(), memory->getLength(), false);
      } else if (auto* call = dyn_cast<CallInst>(&instruction)) {
        add_memory_function(*call);
      }
    }
  }

  // As accesses, which may get raw addresses.
  void add_short_copy(Instruction& copy, uint64_t bytes) {
    const bool is_transfer = isa<MemTransferInst>(copy);
    short_copies_.push_back(cast<MemIntrinsic>(&copy));
    for (const unsigned operand : {1u, 0u}) {
      const bool is_store = operand == 0;
      const Access access{&copy, operand, bytes, is_store, true};
      if ((is_store || is_transfer) && !unmanaged_.contains(access.address())) accesses_.push_back(access);
    }
  }

  void add_memory_function(CallInst& call) {
    const Function* callee = call.getCalledFunction();
    if (!callee || !callee->isDeclaration() || callee->isIntrinsic() || call.arg_size() != 3) return;
    for (const MemoryFunction& known : kMemoryFunctions) {
      if (callee->getName() != known.name) continue;
      Value* pointer = call.getArgOperand(known.pointer);
      Value* bytes = call.getArgOperand(known.bytes);
      if (pointer->getType()->isPointerTy() && bytes->getType()->isIntegerTy(64))
        add_range(call, pointer, bytes, known.is_store);
    }
  }

  void add_range(Instruction& instruction, Value* address, Value* bytes, bool is_store) {
    if (address->getType()->getPointerAddressSpace() != 0 || unmanaged_.contains(address)) return;
    if (auto* constant = dyn_cast<ConstantInt>(bytes); constant && constant->isZero()) return;
    ranges_.push_back({&instruction, address, bytes, is_store});
  }

  bool wants_versions(FunctionAnalysisManager& analyses) const {
    if (!opt_versions || !can_have_two_versions(function_)) return false;
    return accesses_.size() + ranges_.size() > kHintsWithoutVersionsMax ||
           !analyses.getResult<LoopAnalysis>(function_).empty();
  }

  void prepare_versions(FunctionAnalysisManager& analyses, std::optional<TwoVersions>& versions) {
    TwoVersions::prepare(function_, analyses);
    versions.emplace(function_, analyses.getResult<LoopAnalysis>(function_),
                     analyses.getResult<ScalarEvolutionAnalysis>(function_), Returns::kYes);
  }

  void write_hints(FunctionAnalysisManager& analyses, TwoVersions* versions) {
    HintPlan plan;
    if (is_optimised()) {
      plan = plan_hints(accesses_, analyses.getResult<LoopAnalysis>(function_),
                        analyses.getResult<DominatorTreeAnalysis>(function_),
                        analyses.getResult<ScalarEvolutionAnalysis>(function_));
    } else {
      for (const Access& access : accesses_) {
        PlannedHint& hint = plan.hints.emplace_back();
        hint.before = access.instruction;
        hint.address = access.address();
        hint.is_store = access.is_store;
        if (may_reach(access)) hint.reached.push_back({access, 0});
      }
      number_sites(plan.hints);
    }
    for (PlannedLoop& loop : plan.loops) find_first_addresses(loop);
    for (const PlannedLoop& loop : plan.loops)
      if (loop.is_cut) cut_loop(loop, writer_, versions);
    if (versions) versions->cut_returning_loops(writer_.version_switch());
    for (const PlannedLoop& loop : plan.loops) write_streams(loop, writer_);
    for (const Range& range : reverse(ranges_)) hint_range(range);
    for (const PlannedHint& hint : reverse(plan.hints)) {
      if (hint.reached.empty())
        writer_.test(*hint.before, hint.address, hint.is_store, hint.kind);
      else
        reach(hint);
    }
    for (MemIntrinsic* copy : short_copies_) write_as_instructions(*copy);
  }

  // Or it might be a call of a function that is recompiled, too.
  static void write_as_instructions(MemIntrinsic& copy) {
    IRBuilder<> builder(&copy);
    CallInst* inlined;
    if (auto* transfer = dyn_cast<MemTransferInst>(&copy))
      inlined = builder.CreateMemCpyInline(transfer->getRawDest(), transfer->getDestAlign(),
                                           transfer->getRawSource(), transfer->getSourceAlign(),
                                           transfer->getLength());
    else
      inlined = builder.CreateMemSetInline(copy.getRawDest(), copy.getDestAlign(),
                                           cast<MemSetInst>(copy).getValue(), copy.getLength());
    inlined->copyMetadata(copy);
    copy.eraseFromParent();
  }

  void reach(const PlannedHint& hint) {
    int64_t low = 0, high = 0;
    for (const auto& [access, distance] : hint.reached) {
      low = std::min(low, distance);
      high = std::max(high, distance + static_cast<int64_t>(access.size_bytes));
    }
    Value* raw = writer_.reach(*hint.before, hint.address, low, static_cast<uint64_t>(high - low),
                               hint.is_store, hint.site);
    for (const auto& [access, distance] : hint.reached) {
      IRBuilder<> builder(access.instruction);
      access.set_address(distance ? ptr_add(builder, raw, builder.getInt64(static_cast<uint64_t>(distance)))
                                  : raw);
      forget_invariance(*access.instruction);
    }
  }

  bool is_optimised() const { return !function_.hasOptNone(); }

  void test_last(Instruction& before, const Range& range, HintWriter::Address kind) {
    IRBuilder<> builder(&before);
    Value* bytes = builder.CreateZExtOrTrunc(range.bytes, builder.getInt64Ty());
    Value* last = ptr_add(builder, range.address, builder.CreateSub(bytes, builder.getInt64(1)));
    writer_.test_for_call(before, last, range.is_store, kind);
  }

  void hint_range(const Range& range) {
    Instruction& before = *range.instruction;
    if (auto* constant = dyn_cast<ConstantInt>(range.bytes);
        constant && constant->getZExtValue() < SPW_HINT_RANGE_BYTES_MIN) {
      writer_.test_for_call(before, range.address, range.is_store);
      if (constant->getZExtValue() > kOneHintBytesMax) test_last(before, range, HintWriter::Address::kSure);
      return;
    }
    IRBuilder<> builder(&before);
    Value* bytes = builder.CreateZExtOrTrunc(range.bytes, builder.getInt64Ty());
    Value* is_long = builder.CreateICmpUGE(bytes, builder.getInt64(SPW_HINT_RANGE_BYTES_MIN));
    Instruction* when_long = nullptr;
    Instruction* when_short = nullptr;
    SplitBlockAndInsertIfThenElse(is_long, &before, &when_long, &when_short);
    builder.SetInsertPoint(when_long);
    builder.SetCurrentDebugLocation(before.getDebugLoc());
    writer_.call_range(builder, range.address, bytes, range.is_store);
    // A copy of no bytes may have any address.
    writer_.test_for_call(*when_short, range.address, range.is_store, HintWriter::Address::kGuess);
    test_last(*when_short, range, HintWriter::Address::kGuess);
  }

  Function& function_;
  HintWriter& writer_;
  const UnmanagedPointers& unmanaged_;
  SmallVector<Access, 0> accesses_;
  SmallVector<Range, 0> ranges_;
  SmallVector<MemIntrinsic*, 0> short_copies_;
};

}  // namespace

void instrument_for_mapped(Module& module, FunctionAnalysisManager& analyses) {
  HintWriter writer(module);
  const UnmanagedPointers unmanaged(module);
  for (Function* function : eligible_functions(module))
    FunctionHints(*function, writer, unmanaged).run(analyses);
  writer.require_version();
}

}  // namespace spw::pass
