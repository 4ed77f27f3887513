// Writes translations into a function: the hot sequence of abi/abi.h and the cold blocks beside it.
//
//            head:   managed(p)? ──no──────────────┐
//                      │yes                        │
//            check:  tag of entry(p) == granule? ──│─no──▶ miss: filled by who asked
//                      │yes                        │          │
//            hit:    p + delta                     │          │
//                      ▼                           ▼          ▼
//            use:    raw = phi [hit] [head] [miss, where it comes back]
//
// Why the access cannot leave its translation. The pass runs last, so only code generation follows. A call in
// `miss`, this one's or the next one's, may write any memory as far as LLVM knows, and the raw address it
// could return is not known before it: no access on a raw address moves across a call that may translate,
// unless something says that its memory never changes, which forget_invariance() takes away. Hits move
// nothing: they evict nothing. Validity: between a translation and its access at most one other translation
// is made (a copy's second pointer), far below SPW_STABLE_TRANSLATIONS.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "pass/access.h"
#include "pass/runtime_symbols.h"

namespace spw::pass {

class Translator {
 public:
  Translator(llvm::Function& function, RuntimeSymbols& symbols);

  // kRare: code that is seldom reached, which asks the runtime at once instead of carrying the lookup.
  enum class Place : uint8_t { kUsual, kRare };

  // The blocks and the raw address of one translation. `miss` has no terminator yet; who comes back to `use`
  // from it adds itself to `raw`.
  struct Probe {
    llvm::BasicBlock* miss;
    llvm::BasicBlock* use;
    llvm::PHINode* raw;
  };
  // Splits the block of `before`, which becomes the first instruction of `use` but for the phi.
  Probe probe(llvm::Instruction* before, llvm::Value* address, uint64_t size_bytes, bool may_cross,
              bool is_store, Place where = Place::kUsual);

  // The lookup in the direct SATC. Ends `from` with the test for managed space; an unmanaged address goes to
  // `unmanaged`. `hit` and `miss` have no terminator yet; `delta` is known in `hit`. The table is asked for the granule
  // of `bits`, the tag compared is that of the last of `size_bytes` when they may cross.
  struct Lookup {
    llvm::BasicBlock* hit;
    llvm::BasicBlock* miss;
    llvm::Value* delta;
    llvm::Value* entry;
    llvm::Value* granule;
  };
  Lookup lookup(llvm::BasicBlock* from, llvm::BasicBlock* unmanaged, llvm::Value* bits, uint64_t size_bytes,
                bool may_cross, bool is_store, const llvm::DebugLoc& place);

  // Translates [low, low + span) as a whole, behind `*block`, which has no terminator; `*block` becomes the block to go
  // on in. Returns raw - managed for the range, 0 for an unmanaged one. A range that crosses a granule goes to
  // `crossing`, which is needed only when it may; with `may_span`, only if it does not lie side by side in raw memory.
  struct Range {
    llvm::Value* low;
    llvm::Value* bits;  // the address `low` as an integer
    uint64_t span_bytes;
    bool may_cross;
    bool is_store;
    bool may_span = false;
  };
  // `may_store`, when asked for: whether the granule is known to be open to stores, too.
  llvm::Value* translate_range(const Range& range, llvm::BasicBlock** block, llvm::BasicBlock* crossing,
                               const llvm::DebugLoc& place, llvm::Value** may_store = nullptr);

  // Translates the access on its own.
  void translate(const Access& access, Place where = Place::kUsual);

  // A slot of the entry block for values of `type`, shared by all who need one for a moment.
  llvm::AllocaInst* slot(llvm::Type* type);

  RuntimeSymbols& symbols() { return symbols_; }
  llvm::Function& function() { return function_; }

 private:
  void fill_load_miss(const Access& access, const Probe& probe);
  void fill_store_miss(const Access& access, const Probe& probe);
  void count_hit(llvm::IRBuilder<>& builder);

  llvm::Function& function_;
  RuntimeSymbols& symbols_;
  llvm::DenseMap<llvm::Type*, llvm::AllocaInst*> slots_;
};

// Whether the address `bits` lies in managed space.
llvm::Value* is_managed(llvm::IRBuilder<>& builder, llvm::Value* bits);

// Branch weights of "almost always true".
llvm::MDNode* likely(llvm::LLVMContext& context);

}  // namespace spw::pass
