#include "pass/two_versions.h"

#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/SSAUpdaterBulk.h"
#include "pass/llvm_versions.h"
#include "pass/options.h"

namespace spw::pass {

using namespace llvm;

namespace {

// A loop that is cut reads the switch once in so many iterations: a mispredicted branch each time.
constexpr uint64_t kChunkIterations = 512;
// A loop that surely ends sooner does not read it at all.
constexpr unsigned kFewIterationsMax = 16;

// A convergent call may be copied: those of OpenMP's runtime
// (barriers, reductions) are, for targets whose threads run in step.
bool can_be_there_twice(const Instruction& instruction) {
  if (isa<IndirectBrInst, CallBrInst>(instruction) || instruction.getType()->isTokenTy()) return false;
  const auto* call = dyn_cast<CallBase>(&instruction);
  if (!call) return true;
  if (call->cannotDuplicate() || call->hasFnAttr(Attribute::ReturnsTwice)) return false;
  return call->getIntrinsicID() != Intrinsic::localescape;
}

// What the vectoriser left for the iterations that fill no vector.
bool is_remainder(const Loop& loop) {
  if (!getBooleanLoopAttribute(&loop, "llvm.loop.isvectorized")) return false;
  for (const BasicBlock* block : loop.blocks())
    for (const Instruction& instruction : *block)
      if (instruction.getType()->isVectorTy()) return false;
  return true;
}

bool is_short(Loop& loop, ScalarEvolution& evolution) {
  if (!loop.isInnermost()) return false;
  const unsigned most = evolution.getSmallConstantMaxTripCount(&loop);
  return (most != 0 && most <= kFewIterationsMax) || is_remainder(loop);
}

}  // namespace

bool can_have_two_versions(const Function& function) {
  if (function.hasOptNone() || function.isPresplitCoroutine() ||
      function.hasFnAttribute(Attribute::NoDuplicate) || function.callsFunctionThatReturnsTwice())
    return false;
  if (function.hasPersonalityFn() &&
      isScopedEHPersonality(classifyEHPersonality(function.getPersonalityFn())))
    return false;
  for (const BasicBlock& block : function)
    if (block.hasAddressTaken()) return false;
  return all_of(instructions(function), can_be_there_twice);
}

void TwoVersions::prepare(Function& function, FunctionAnalysisManager& analyses) {
  auto& loops = analyses.getResult<LoopAnalysis>(function);
  auto& tree = analyses.getResult<DominatorTreeAnalysis>(function);
  for (Loop* loop : loops) simplifyLoop(loop, &tree, &loops, nullptr, nullptr, nullptr, false);
  separate_entry(function);
  analyses.invalidate(function, PreservedAnalyses::none());
}

// The entry block keeps the static allocas, which hold their place in the frame there, and what stands before them.
void TwoVersions::separate_entry(Function& function) {
  BasicBlock& entry = function.getEntryBlock();
  const auto place = entry.getFirstNonPHIOrDbgOrAlloca();
  for (Instruction& instruction : make_early_inc_range(make_range(place, entry.end())))
    if (auto* alloca = dyn_cast<AllocaInst>(&instruction); alloca && alloca->isStaticAlloca())
      alloca->moveBefore(entry, place);
  entry.splitBasicBlock(place, "spw.instrumented");
}

TwoVersions::TwoVersions(Function& function, LoopInfo& loops, ScalarEvolution& evolution, Returns returns)
    : function_(function),
      returns_(returns),
      entry_(&function.getEntryBlock()),
      instrumented_(entry_->getUniqueSuccessor()) {
  clone_body();
  if (opt_polls) find_crossings(loops, evolution);
}

void TwoVersions::clone_body() {
  SmallVector<BasicBlock*, 0> body;
  for (BasicBlock& block : function_)
    if (&block != entry_) body.push_back(&block);
  SmallVector<BasicBlock*, 0> copies;
  for (BasicBlock* block : body) {
    BasicBlock* copy = CloneBasicBlock(block, plain_of_, ".plain", &function_);
    copy->moveBefore(instrumented_);
    plain_of_[block] = copy;
    plain_blocks_.insert(copy);
    copies.push_back(copy);
  }
  remapInstructionsInBlocks(copies, plain_of_);
}

void TwoVersions::find_crossings(LoopInfo& loops, ScalarEvolution& evolution) {
  for (Loop* loop : loops.getLoopsInPreorder()) {
    BasicBlock* header = loop->getHeader();
    if (header->isEHPad() || is_short(*loop, evolution)) continue;
    const auto counted = CountedLoop::recognise(*loop);
    if (!counted && loop->isInnermost() && loop->getParentLoop()) continue;
    Crossing crossing;
    crossing.returns = returns_ == Returns::kYes && !loop->getParentLoop();
    Place& plain = crossing.plain;
    Place& instrumented = crossing.instrumented;
    plain.entry = plain.exit = cast<BasicBlock>(plain_of_[header]);
    instrumented.entry = instrumented.exit = header;
    for (PHINode& phi : header->phis()) {
      instrumented.phis.push_back(&phi);
      plain.phis.push_back(cast<PHINode>(plain_of_[&phi]));
    }
    if (counted) plain.counted = counted->in_copy(plain_of_);
    instrumented.counted = counted;
    crossings_[header] = std::move(crossing);
  }
}

void TwoVersions::loop_is_cut(BasicBlock* header, const ChunkedLoop& cut) {
  const auto crossing = crossings_.find(header);
  if (crossing == crossings_.end()) return;
  crossing->second.instrumented = {cut.dispatch, cut.phis, cut.dispatch, std::nullopt};
}

void TwoVersions::cut_returning_loops(const VersionSwitch& version_switch) {
  for (auto& [header, crossing] : crossings_)
    if (crossing.returns && crossing.instrumented.counted) cut(crossing.instrumented, version_switch);
}

void TwoVersions::enter_in_front(const LoopInfo& loops) {
  crossings_.remove_if([&](const auto& entry) { return !loops.getLoopFor(entry.first)->getLoopPreheader(); });
  for (auto& [header, crossing] : crossings_) {
    BasicBlock* preheader = loops.getLoopFor(header)->getLoopPreheader();
    auto* front = BasicBlock::Create(header->getContext(), "spw.front", &function_, header);
    IRBuilder<> builder(front);
    builder.SetCurrentDebugLocation(preheader->getTerminator()->getDebugLoc());
    Place& place = crossing.instrumented;
    place = {front, {}, front, std::nullopt};
    for (PHINode& phi : header->phis()) {
      PHINode* first = builder.CreatePHI(phi.getType(), 2, phi.getName());
      const int index = phi.getBasicBlockIndex(preheader);
      first->addIncoming(phi.getIncomingValue(index), preheader);
      phi.setIncomingValue(index, first);
      phi.setIncomingBlock(index, front);
      place.phis.push_back(first);
    }
    builder.CreateBr(header);
    preheader->getTerminator()->replaceSuccessorWith(header, front);
  }
}

// A loop of few iterations pays a comparison at its start and one at its end.
void TwoVersions::cut(Place& place, const VersionSwitch& version_switch) {
  const CountedLoop& counted = *place.counted;
  const uint64_t most = (kChunkIterations - 1) * counted.stride();
  BasicBlock* at_long = nullptr;
  const auto chunk = [&](IRBuilder<>& builder, const ChunkedLoop& cut, Value* left) -> Value* {
    LLVMContext& context = builder.getContext();
    at_long = BasicBlock::Create(context, "spw.long", &function_, counted.header);
    auto* go = BasicBlock::Create(context, "spw.go", &function_, counted.header);
    builder.CreateCondBr(builder.CreateICmpUGT(left, builder.getInt64(most)), at_long, go,
                         version_switch.unlikely());
    builder.SetInsertPoint(at_long);
    builder.CreateBr(go);
    builder.SetInsertPoint(go);
    PHINode* way = builder.CreatePHI(left->getType(), 2, "spw.way");
    way->addIncoming(left, cut.dispatch);
    way->addIncoming(builder.getInt64(most), at_long);
    return way;
  };
  const ChunkedLoop cut = ChunkedLoop::cut(counted, chunk);
  place = {cut.dispatch, cut.phis, at_long, std::nullopt};
}

void TwoVersions::write_crossing(const Place& from, const Place& to, bool when_set,
                                 const VersionSwitch& version_switch) {
  BasicBlock* rest = from.exit->splitBasicBlock(from.exit->getFirstInsertionPt(), "spw.stay");
  Instruction* end = from.exit->getTerminator();
  IRBuilder<> builder(end);
  Value* is_set = version_switch.is_set(builder);
  builder.CreateCondBr(when_set ? is_set : builder.CreateNot(is_set), to.entry, rest,
                       version_switch.unlikely());
  end->eraseFromParent();
  for (auto [theirs, ours] : zip_equal(to.phis, from.phis)) theirs->addIncoming(ours, from.exit);
}

void TwoVersions::connect(const VersionSwitch& version_switch, MDNode* entry_weights) {
  auto* plain = cast<BasicBlock>(plain_of_[instrumented_]);
  Instruction* end = entry_->getTerminator();
  IRBuilder<> builder(end);
  builder.CreateCondBr(version_switch.is_set(builder), instrumented_, plain, entry_weights);
  end->eraseFromParent();
  if (crossings_.empty()) return;
  // Before any block is split: the loops know theirs by what they were.
  for (auto& [header, crossing] : crossings_)
    if (crossing.plain.counted) cut(crossing.plain, version_switch);
  for (const auto& [header, crossing] : crossings_) {
    write_crossing(crossing.plain, crossing.instrumented, true, version_switch);
    if (crossing.returns) write_crossing(crossing.instrumented, crossing.plain, false, version_switch);
  }
  repair();
}

// A use that a crossing reaches round the definition gets the other body's value there.
void TwoVersions::repair() {
  DominatorTree tree(function_);
  SSAUpdaterBulk updater;
  for (Instruction& instruction : instructions(function_)) {
    const auto found = plain_of_.find(&instruction);
    if (found == plain_of_.end() || !found->second) continue;  // the test that a cut replaced
    auto* plain = cast<Instruction>(found->second);
    SmallVector<Use*, 4> uses;
    for (Instruction* value : {&instruction, plain}) {
      for (Use& use : value->uses())
        if (!tree.dominates(value, use)) uses.push_back(&use);
      if (!value->isUsedByMetadata()) continue;
      for (DebugUser* user : debug_users_of(*value))
        if (!tree.dominates(value, place_of(user))) user->setKillLocation();
    }
    if (uses.empty()) continue;
    const unsigned variable = updater.AddVariable(instruction.getName(), instruction.getType());
    updater.AddAvailableValue(variable, instruction.getParent(), &instruction);
    updater.AddAvailableValue(variable, plain->getParent(), plain);
    for (Use* use : uses) updater.AddUse(variable, use);
  }
  updater.RewriteAllUses(&tree);
}

}  // namespace spw::pass
