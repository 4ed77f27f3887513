#include "pass/instrument.h"

#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Verifier.h"
#include "llvm/TargetParser/Triple.h"
#include "pass/block_loops.h"
#include "pass/durable/durable_module.h"
#include "pass/eligible_functions.h"
#include "pass/hints/mapped_module.h"
#include "pass/library_code.h"
#include "pass/llvm_versions.h"
#include "pass/masked_accesses.h"
#include "pass/memory_intrinsics.h"
#include "pass/options.h"
#include "pass/redirects.h"
#include "pass/runtime_symbols.h"
#include "pass/segments.h"
#include "pass/translator.h"
#include "pass/two_versions.h"
#include "pass/unmanaged_pointers.h"

namespace spw::pass {

using namespace llvm;

namespace {

constexpr const char* kPassName = "spillway";

class FunctionInstrumenter {
 public:
  FunctionInstrumenter(Function& function, RuntimeSymbols& symbols, const VersionSwitch& version_switch,
                       const UnmanagedPointers& unmanaged)
      : function_(function),
        version_switch_(version_switch),
        unmanaged_(unmanaged),
        translator_(function, symbols),
        windows_(translator_),
        remarks_(&function) {}

  void run(FunctionAnalysisManager& analyses) {
    copy_managed_byval_arguments();
    collect();
    if (wants_versions()) make_versions(analyses);
    translate_together(analyses);
    SmallVector<Instruction*, 0> lanes;
    for (IntrinsicInst* masked : masked_) lower_masked_access(*masked, translator_, unmanaged_, lanes);
    for (CallInst* comparison : comparisons_)
      instrument_small_comparison(*comparison, translator_, windows_, unmanaged_);
    for (MemIntrinsic* intrinsic : memory_)
      instrument_memory_intrinsic(*intrinsic, translator_, windows_, unmanaged_);
    singles_.insert(lanes.begin(), lanes.end());
    // Last to first: splitting a block then moves only what lies behind the access, and the whole stays linear.
    const DataLayout& layout = function_.getParent()->getDataLayout();
    for (Instruction* instruction : reverse(singles_))
      translator_.translate(*access_of(*instruction, layout));
    for (Instruction* instruction : reverse(rare_))
      translator_.translate(*access_of(*instruction, layout), Translator::Place::kRare);
    windows_.finish([this](const BasicBlock& block) { return versions_ && versions_->is_plain(block); });
    // What it reads and writes is no longer what the optimiser found.
    function_.removeFnAttr(Attribute::Memory);
    function_.removeFnAttr(Attribute::Speculatable);
  }

 private:
  void collect() {
    const DataLayout& layout = function_.getParent()->getDataLayout();
    for (Instruction& instruction : make_early_inc_range(instructions(function_))) {
      if (const auto access = access_of(instruction, layout)) {
        if (!unmanaged_.contains(access->address())) singles_.insert(&instruction);
      } else if (auto* memory = dyn_cast<MemIntrinsic>(&instruction)) {
        memory_.push_back(memory);
      } else if (auto* call = dyn_cast<CallBase>(&instruction)) {
        collect_call(*call);
      }
    }
  }

  // A program that counts its translations makes them.
  bool wants_versions() const {
    const bool accesses = !singles_.empty() || !memory_.empty() || !comparisons_.empty() || !masked_.empty();
    return opt_versions && !opt_count_hits && accesses && !function_.hasMinSize() &&
           can_have_two_versions(function_);
  }

  // From here on `function_` is instrumented where it is not plain.
  void make_versions(FunctionAnalysisManager& analyses) {
    TwoVersions::prepare(function_, analyses);
    auto& loops = analyses.getResult<LoopAnalysis>(function_);
    versions_.emplace(function_, loops, analyses.getResult<ScalarEvolutionAnalysis>(function_), Returns::kNo);
    versions_->enter_in_front(loops);
    versions_->connect(version_switch_, nullptr);
    analyses.invalidate(function_, PreservedAnalyses::none());
  }

  void translate_together(FunctionAnalysisManager& analyses) {
    if (function_.hasOptNone() || function_.hasOptSize() || singles_.empty()) return;
    if (opt_block_loops && make_loops_block_wise(translator_, analyses, singles_))
      analyses.invalidate(function_, PreservedAnalyses::none());
    if (!opt_merge && !opt_windows) return;
    const DataLayout& layout = function_.getParent()->getDataLayout();
    SmallVector<Access, 0> accesses;
    for (Instruction* instruction : singles_) accesses.push_back(*access_of(*instruction, layout));
    SegmentPlanner planner(analyses.getResult<ScalarEvolutionAnalysis>(function_),
                           analyses.getResult<LoopAnalysis>(function_),
                           analyses.getResult<DominatorTreeAnalysis>(function_));
    auto segments = planner.plan(accesses);
    SmallVector<Windows::Home, 0> homes(accesses.size(), Windows::kFunction);
    if (has_many_windows(segments)) choose_homes(planner, segments, accesses, homes);
    for (const Segment& segment : segments) translate_segment(segment, windows_, singles_, rare_);
    // What is left of the same pointers goes through their windows.
    for (const auto& [access, home] : zip_equal(accesses, homes)) {
      if (!singles_.contains(access.instruction) || !windows_.find(access.address(), home)) continue;
      Segment alone{access.instruction, access.instruction, {Group(access)}};
      alone.groups.front().is_stream = true;
      alone.groups.front().home = home;
      translate_segment(alone, windows_, singles_, rare_);
    }
  }

  // A window that is of use everywhere gets a phi at nearly every join of blocks.
  bool has_many_windows(ArrayRef<Segment> segments) const {
    size_t streams = 0;
    for (const Segment& segment : segments)
      streams +=
          static_cast<size_t>(count_if(segment.groups, [](const Group& group) { return group.is_stream; }));
    const size_t blocks =
        versions_ ? function_.size() / 2 : function_.size();  // a window is of no use in plain ones
    return streams * blocks > opt_window_blocks_max;
  }

  void choose_homes(SegmentPlanner& planner, MutableArrayRef<Segment> segments, ArrayRef<Access> accesses,
                    MutableArrayRef<Windows::Home> homes) {
    DenseMap<const Loop*, Windows::Home> known{{nullptr, Windows::kFunction}};
    const auto home_of = [&](const Instruction& place) {
      const Loop* nest = planner.nest_of(place);
      const auto [home, is_new] = known.try_emplace(nest, Windows::kFunction);
      if (is_new) {
        SmallVector<Instruction*, 2> entries;
        for (BasicBlock* before : predecessors(nest->getHeader()))
          if (!nest->contains(before)) entries.push_back(before->getTerminator());
        home->second = windows_.add_home(entries);
      }
      return home->second;
    };
    for (Segment& segment : segments)
      for (Group& group : segment.groups)
        if (group.is_stream) group.home = home_of(*group.accesses.front().instruction);
    for (auto [access, home] : zip_equal(accesses, homes)) home = home_of(*access.instruction);
  }

  void collect_call(CallBase& call) {
    call.removeFnAttr(Attribute::Memory);
    if (call.isInlineAsm()) return report_inline_assembly(call);
    if (is_small_comparison(call)) return comparisons_.push_back(cast<CallInst>(&call));
    auto* intrinsic = dyn_cast<IntrinsicInst>(&call);
    if (!intrinsic) return;
    if (IntrinsicInst* generic = generic_masked_access(*intrinsic)) intrinsic = generic;
    if (is_masked_access(*intrinsic)) {
      masked_.push_back(intrinsic);
    } else {
      report_untranslated_intrinsic(*intrinsic);
    }
  }

  // Code generation copies a byval argument from its address, where no translation can be put: pass a copy instead.
  void copy_managed_byval_arguments() {
    SmallVector<CallBase*, 4> calls;
    for (Instruction& instruction : instructions(function_))
      if (auto* call = dyn_cast<CallBase>(&instruction))
        if (call->hasByValArgument() && !call->isMustTailCall()) calls.push_back(call);
    for (CallBase* call : calls)
      for (unsigned i = 0; i < call->arg_size(); ++i)
        if (call->isByValArgument(i) && !unmanaged_.contains(call->getArgOperand(i)))
          copy_byval_argument(*call, i);
  }

  void copy_byval_argument(CallBase& call, unsigned operand) {
    Type* type = call.getParamByValType(operand);
    const DataLayout& layout = function_.getParent()->getDataLayout();
    const Align alignment = call.getParamAlign(operand).value_or(layout.getABITypeAlign(type));
    auto* copy = make_alloca(function_, type, "spw.byval", alignment);
    IRBuilder<> builder(&call);
    builder.CreateMemCpy(copy, alignment, call.getArgOperand(operand), alignment,
                         layout.getTypeAllocSize(type).getFixedValue());
    call.setArgOperand(operand, copy);
    if (auto* plain_call = dyn_cast<CallInst>(&call)) plain_call->setTailCall(false);
  }

  void report_inline_assembly(const CallBase& call) {
    for (const Value* argument : call.args())
      if (argument->getType()->isPointerTy() && !unmanaged_.contains(argument))
        return remark(call, "InlineAssembly",
                      "inline assembly gets a pointer that may be managed; it is not translated");
  }

  void report_untranslated_intrinsic(const IntrinsicInst& intrinsic) {
    if (!intrinsic.mayReadOrWriteMemory() || intrinsic.isAssumeLikeIntrinsic()) return;
    switch (intrinsic.getIntrinsicID()) {
      case Intrinsic::prefetch:  // never faults, so a managed address is only useless
      case Intrinsic::vastart:
      case Intrinsic::vaend:
      case Intrinsic::vacopy:
      case Intrinsic::threadlocal_address:
      case Intrinsic::trap:
      case Intrinsic::debugtrap:
        return;
      default:
        break;
    }
    for (const Value* argument : intrinsic.args())
      if (argument->getType()->isPointerTy() && !unmanaged_.contains(argument))
        return remark(intrinsic, "UntranslatedIntrinsic",
                      "this intrinsic gets a pointer that may be managed; it is not translated");
  }

  void remark(const Instruction& instruction, const char* name, const char* text) {
    remarks_.emit([&] { return OptimizationRemarkMissed(kPassName, name, &instruction) << text; });
  }

  Function& function_;
  const VersionSwitch& version_switch_;
  const UnmanagedPointers& unmanaged_;
  std::optional<TwoVersions> versions_;
  Translator translator_;
  Windows windows_;
  OptimizationRemarkEmitter remarks_;
  SetVector<Instruction*> singles_;    // to be translated one by one, in the order of instructions
  SmallVector<Instruction*, 0> rare_;  // the same in pieces that are seldom reached
  SmallVector<MemIntrinsic*, 0> memory_;
  SmallVector<CallInst*, 0> comparisons_;
  SmallVector<IntrinsicInst*, 0> masked_;
};

void instrument_for_translated(Module& module, FunctionAnalysisManager& analyses) {
  redirect_functions(module);
  RuntimeSymbols symbols(module);
  const UnmanagedPointers unmanaged(module);
  const VersionSwitch version_switch(module.getContext());
  for (Function* function : eligible_functions(module))
    FunctionInstrumenter(*function, symbols, version_switch, unmanaged).run(analyses);
  symbols.require_version();
}

// With link-time optimisation the engine is chosen where a module is compiled and the
// code is written where it is linked: these flags of the module tell the one to the
// other. A module that is linked from several announces stores if one of them was to.
constexpr const char* kEngineFlag = "spillway.engine";
constexpr const char* kDurableFlag = "spillway.durable";

EngineKind engine_of(const Module& module) {
  const auto* flag = mdconst::extract_or_null<ConstantInt>(module.getModuleFlag(kEngineFlag));
  return flag ? static_cast<EngineKind>(flag->getZExtValue()) : opt_engine;
}

bool is_durable(const Module& module) { return opt_durable || module.getModuleFlag(kDurableFlag); }

void instrument_for(EngineKind engine, Module& module, FunctionAnalysisManager& analyses) {
  switch (engine) {
    case EngineKind::kTranslated:
      return instrument_for_translated(module, analyses);
    case EngineKind::kMapped:
      return instrument_for_mapped(module, analyses);
    case EngineKind::kNone:
      return;
  }
}

}  // namespace

PreservedAnalyses MarkEnginePass::run(Module& module, ModuleAnalysisManager&) {
  auto* engine =
      ConstantInt::get(Type::getInt32Ty(module.getContext()), static_cast<uint32_t>(opt_engine.getValue()));
  module.setModuleFlag(Module::Error, kEngineFlag, ConstantAsMetadata::get(engine));
  if (opt_durable) module.addModuleFlag(Module::Max, kDurableFlag, 1);
  return PreservedAnalyses::all();
}

PreservedAnalyses InstrumentPass::run(Module& module, ModuleAnalysisManager& module_analyses) {
  constexpr const char* kFlag = "spillway";
  if (module.getModuleFlag(kFlag)) return PreservedAnalyses::all();
  if (const Triple triple = triple_of(module); triple.getArch() != Triple::x86_64) {
    module.getContext().emitError("spillway: only x86-64 can be instrumented, not " + triple.str());
    return PreservedAnalyses::all();
  }
  module.addModuleFlag(Module::Max, kFlag, 1);
  const EngineKind engine = engine_of(module);
  const bool durable = is_durable(module);
  if (engine == EngineKind::kNone && !durable) return PreservedAnalyses::all();
  if (opt_library) link_library_code(module, engine, durable);
  auto& analyses = module_analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
  if (durable) mark_durable_stores(module, analyses);
  instrument_for(engine, module, analyses);
  if (durable) announce_durable_stores(module);
  if (opt_verify && verifyModule(module, &errs())) report_fatal_error("spillway: invalid code was written");
  return PreservedAnalyses::none();
}

}  // namespace spw::pass
