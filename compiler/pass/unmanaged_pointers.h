// Which pointers provably never point into managed space: to the stack, to globals and constants, to
// thread-local variables, to code, or to what certain functions return. Only these accesses go untranslated.
//
// Purpose beyond one function: an argument of a local function is unmanaged when every call passes an
// unmanaged pointer. Outlined OpenMP regions are such functions; their calls go through __kmpc_fork_call.
// Invariant: an answer is about the value, not the place asked at, so it holds for clones of the code as
// well. Limits: a pointer made from more than kLeavesMax origins counts as unknown.
#pragma once

#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/Module.h"

namespace spw::pass {

class UnmanagedPointers {
 public:
  // Looks at the whole module once. Functions added later have no known arguments.
  explicit UnmanagedPointers(llvm::Module& module);

  bool contains(const llvm::Value* pointer) const;

 private:
  static constexpr unsigned kLeavesMax = 64;

  void find_unmanaged_arguments(llvm::Module& module);
  bool origin_is_unmanaged(const llvm::Value* origin) const;

  llvm::DenseSet<const llvm::Argument*> arguments_;
};

}  // namespace spw::pass
