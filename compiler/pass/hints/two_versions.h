// Two versions of a function in one: the *plain* body as it was optimised, and the *hinted* one beside it, cold.
//
// Static allocas stay in the entry block, which both share. The entry block reads the switch (abi/hints.h) and enters one
// of them. Order of calls: construct (nothing changes but that the entry block is split), let others write hints into
// `function` as it stands, connect(). In between the plain body is unreachable, so analyses see only the hinted one.
#pragma once

#include "llvm/IR/Function.h"
#include "llvm/Transforms/Utils/ValueMapper.h"
#include "pass/hints/hint_writer.h"

namespace spw::pass {

// Whether the body of `function` can be there twice.
bool can_have_two_versions(const llvm::Function& function);

class TwoVersions {
 public:
  explicit TwoVersions(llvm::Function& function);

  void connect(HintWriter& writer);

 private:
  llvm::BasicBlock* entry_;
  llvm::BasicBlock* hinted_;          // where the hinted body begins
  llvm::ValueToValueMapTy plain_of_;  // from the hinted body's values and blocks
};

}  // namespace spw::pass
