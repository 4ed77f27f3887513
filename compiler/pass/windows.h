// Windows: the granule that a stream of accesses was last translated in, kept in registers.
//
//   in window:  address - start <= granule size - size of the access   (unsigned)   =>   raw address = raw + (address - start)
//   a store compares with store_start, which is start where the block may be stored to, and kClosed where not
//
// A window costs three instructions where a lookup costs fourteen and no load on the way to the address: the access
// itself adds `raw` and the distance up. It holds an unmanaged address' granule as well, with raw = start. Any access may
// go through any window; it pays where both mostly touch the same granule: the streams of a loop, and the other accesses
// of the function to the same pointers.
//
// Invariant: start is kClosed, or the granule at `start` is at `raw` now; store_start is kClosed, or equals start and the block
// is marked dirty, as it stays while it is pinned. A translation that the direct SATC answers evicts nothing, so only calls
// can end a translation's life: every call that may translate, ours in cold blocks or the program's, closes all windows
// of the function first. The windows are variables of the entry block until finish() turns them into registers.
#pragma once

#include <deque>

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "pass/translator.h"

namespace spw::pass {

struct Window {
  llvm::AllocaInst* start;        // an integer
  llvm::AllocaInst* store_start;  // an integer
  llvm::AllocaInst* raw;          // a pointer
};

class Windows {
 public:
  // No user address plus a granule reaches this, so a closed window contains nothing.
  static constexpr uint64_t kClosed = uint64_t(1) << 63;

  explicit Windows(Translator& translator) : translator_(translator) {}

  // A window that find() gives to who accesses `address` or what lies at a constant distance from it.
  const Window& create(const llvm::Value* address);
  void also_for(const Window& window, const llvm::Value* address) {
    by_pointer_[pointer_of(address)] = &window;
  }
  // nullptr: there is none.
  const Window* find(const llvm::Value* address) const { return by_pointer_.lookup(pointer_of(address)); }

  // Translates the range as Translator::translate_range() does, through `window` unless that is nullptr, and returns its
  // raw address.
  llvm::Value* translate(const Window* window, const Translator::Range& range, llvm::BasicBlock** block,
                         llvm::BasicBlock* crossing, const llvm::DebugLoc& place);

  // Closes the windows at calls and promotes them. After all other changes to the function.
  void finish();

 private:
  llvm::Value* translate_through(const Window& window, const Translator::Range& range,
                                 llvm::BasicBlock** block, llvm::BasicBlock* crossing,
                                 const llvm::DebugLoc& place);
  static const llvm::Value* pointer_of(const llvm::Value* address);

  Translator& translator_;
  std::deque<Window> windows_;
  llvm::DenseMap<const llvm::Value*, const Window*> by_pointer_;
};

// Whether `instruction`, of a function not yet instrumented, may come to translate and so end what other translations
// promised: any call, inline assembly (which may fault into the runtime) and any intrinsic that touches memory.
bool may_translate(const llvm::Instruction& instruction);

}  // namespace spw::pass
