// Windows: the granule that a stream of accesses was last translated in, kept in registers.
//
//   in window:  address - start <= granule size - size of the access   (unsigned)   =>   raw address = raw + (address - start)
//   a store compares with store_start, which is start where the block may be stored to, and kClosed where not
//
// A window costs three instructions where a lookup costs fourteen and no load on the way to the address: the access
// itself adds `raw` and the distance up. It holds an unmanaged address' granule as well, with raw = start. Any access
// may go through any window; it pays where both mostly touch the same granule: the streams of a loop, and the other
// accesses of the function to the same pointers.
//
// Invariant: start is kClosed, or the granule at `start` is at `raw` now; store_start is kClosed,
// or equals start and the block is marked dirty, as it stays while it is pinned. A translation that
// the direct SATC answers evicts nothing, so only calls can end a translation's life: every call
// that may translate, ours in cold blocks or the program's, closes all windows of the function
// first. The windows are variables of the entry block until finish() turns them into registers.
//
// A window has a *home*: the whole function, or the loop nest of it that all its uses lie in and that it enters closed.
// Outside its home it needs no register, and no join of blocks a phi for it.
#pragma once

#include <deque>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "pass/translator.h"

namespace spw::pass {

struct Window {
  llvm::AllocaInst* start;        // an integer
  llvm::AllocaInst* store_start;  // an integer
  llvm::AllocaInst* raw;          // a pointer
  unsigned home;                  // a Windows::Home
};

class Windows {
 public:
  // No user address plus a granule reaches this, so a closed window contains nothing.
  static constexpr uint64_t kClosed = uint64_t(1) << 63;

  using Home = unsigned;
  static constexpr Home kFunction = 0;

  explicit Windows(Translator& translator) : translator_(translator) {}

  // A loop nest that is entered from the blocks that `entries` end.
  Home add_home(llvm::ArrayRef<llvm::Instruction*> entries) {
    entries_.emplace_back(entries);
    return static_cast<Home>(entries_.size() - 1);
  }

  // A window that find() gives to who accesses `address`, or what lies at a constant distance from it, in `home`.
  const Window& create(const llvm::Value* address, Home home);
  void also_for(const Window& window, const llvm::Value* address) {
    by_pointer_[{pointer_of(address), window.home}] = &window;
  }
  // nullptr: there is none.
  const Window* find(const llvm::Value* address, Home home = kFunction) const {
    return by_pointer_.lookup({pointer_of(address), home});
  }

  // Translates the range as Translator::translate_range() does, through
  // `window` unless that is nullptr, and returns its raw address.
  llvm::Value* translate(const Window* window, const Translator::Range& range, llvm::BasicBlock** block,
                         llvm::BasicBlock* crossing, const llvm::DebugLoc& place);

  // Closes the windows at calls, but for those in blocks that use
  // none, and promotes them. After all other changes to the function.
  void finish(llvm::function_ref<bool(const llvm::BasicBlock&)> is_plain);

 private:
  llvm::Value* translate_through(const Window& window, const Translator::Range& range,
                                 llvm::BasicBlock** block, llvm::BasicBlock* crossing,
                                 const llvm::DebugLoc& place);
  static const llvm::Value* pointer_of(const llvm::Value* address);
  void close(const Window& window, llvm::Instruction& before);
  // The blocks that may be run between an entry of the window's home and a use of the window.
  llvm::SmallVector<llvm::BasicBlock*, 0> region_of(const Window& window) const;

  Translator& translator_;
  std::deque<Window> windows_;
  llvm::DenseMap<std::pair<const llvm::Value*, Home>, const Window*> by_pointer_;
  llvm::SmallVector<llvm::SmallVector<llvm::Instruction*, 2>, 0> entries_{{}};  // by home
};

// Whether `instruction`, of a function not yet instrumented, may come to translate and so end what other translations
// promised: any call, inline assembly (which may fault into the runtime) and any intrinsic that touches memory.
bool may_translate(const llvm::Instruction& instruction);
// It may not go on to the next instruction, or do what a translation, or a raw address, does not outlive.
bool ends_segment(const llvm::Instruction& instruction);

}  // namespace spw::pass
