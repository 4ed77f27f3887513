// The switches of the pass, one for every optimisation, so that each can be measured and ruled out alone.
// Given as `-mllvm -spw-...`; the drivers load the plugin early enough for clang to know them.
#pragma once

#include "llvm/Support/CommandLine.h"

namespace spw::pass {

extern llvm::cl::opt<bool> opt_skip_unmanaged;
extern llvm::cl::opt<bool> opt_merge;
extern llvm::cl::opt<bool> opt_block_loops;
extern llvm::cl::opt<bool> opt_windows;
extern llvm::cl::opt<bool> opt_count_hits;
extern llvm::cl::opt<unsigned> opt_inline_copy_bytes_max;

}  // namespace spw::pass
