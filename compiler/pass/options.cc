#include "pass/options.h"

namespace spw::pass {

using llvm::cl::desc;
using llvm::cl::init;
using llvm::cl::opt;

opt<bool> opt_skip_unmanaged("spw-skip-stack", init(true),
                             desc("Leave accesses alone that provably go to the stack, globals or code"));
opt<bool> opt_merge("spw-merge", init(true), desc("Translate accesses near each other in a block together"));
opt<bool> opt_block_loops("spw-chunk", init(true), desc("Run loops of constant strides granule by granule"));
opt<bool> opt_windows("spw-windows", init(true),
                      desc("Keep the granule that a loop's stream of accesses is in, in registers"));
opt<bool> opt_count_hits("spw-count", init(false),
                         desc("Count direct SATC hits in the thread's direct_hits"));
opt<unsigned> opt_inline_copy_bytes_max(
    "spw-inline-copy", init(128),
    desc("Largest memcpy, memmove or memset that is translated inline, in bytes"));

}  // namespace spw::pass
