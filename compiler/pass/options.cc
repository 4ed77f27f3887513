#include "pass/options.h"

namespace spw::pass {

using llvm::cl::desc;
using llvm::cl::init;
using llvm::cl::opt;
using llvm::cl::values;

opt<EngineKind> opt_engine("spw-engine", init(EngineKind::kTranslated),
                           desc("The engine that code is written for"),
                           values(clEnumValN(EngineKind::kTranslated, "translated",
                                             "addresses are translated"),
                                  clEnumValN(EngineKind::kMapped, "mapped", "residency hints are tested"),
                                  clEnumValN(EngineKind::kNone, "none", "no memory is managed")));
opt<bool> opt_mark_engine("spw-mark-engine", init(false),
                          desc("Only note the engine in the module, for the linker to instrument"));

opt<bool> opt_skip_unmanaged("spw-skip-unmanaged", init(true),
                             desc("Leave accesses alone that provably go to the stack, globals or code"));
opt<bool> opt_verify("spw-verify", init(false), desc("Stop if the code written is not valid"));
opt<bool> opt_library("spw-library", init(true),
                      desc("Bring along libstdc++'s functions on nodes of trees and lists"));

opt<bool> opt_durable("spw-durable", init(false), desc("Announce stores that may go to persistent memory"));
opt<bool> opt_durable_merge("spw-durable-merge", init(true),
                            desc("Announce stores side by side in a block at once"));

opt<bool> opt_merge("spw-merge", init(true), desc("Translate accesses near each other in a block together"));
opt<bool> opt_block_loops("spw-block-loops", init(true),
                          desc("Run loops of constant strides granule by granule"));
opt<bool> opt_windows("spw-windows", init(true),
                      desc("Keep the granule that a loop's stream of accesses is in, in registers"));
opt<unsigned> opt_window_blocks_max(
    "spw-window-blocks-max", init(2048),
    desc("Most windows times blocks of a function for windows to be of use outside their loop nests, too"));
opt<bool> opt_trust_alignment(
    "spw-trust-alignment", init(false),
    desc("Believe that numbers lie where their types say, so that none crosses a granule"));
opt<bool> opt_count_hits("spw-count-hits", init(false),
                         desc("Count direct SATC hits in the thread's direct_hits"));
opt<unsigned> opt_inline_copy_bytes_max(
    "spw-inline-copy-bytes-max", init(128),
    desc("Largest memcpy, memmove or memset that is translated inline, in bytes"));

opt<bool> opt_versions("spw-versions", init(true),
                       desc("Keep a copy of a function without hints, run while everything fits in memory"));
opt<bool> opt_polls("spw-polls", init(true), desc("Leave the copy without hints in loops, too"));
opt<bool> opt_hint_hoist("spw-hint-hoist", init(true),
                         desc("Test hints of addresses that do not change in a loop before it"));
opt<bool> opt_hint_merge("spw-hint-merge", init(true),
                         desc("One hint for accesses near each other in a block"));
opt<bool> opt_hint_dominated("spw-hint-dominated", init(true),
                             desc("No hint where one that dominates it stands for it"));
opt<bool> opt_hint_block_wise("spw-hint-block-wise", init(true),
                              desc("Test hints of moving addresses where they enter a piece"));
opt<bool> opt_hint_chunks("spw-hint-chunks", init(true),
                          desc("Run vector loops in chunks that stay within pieces"));
opt<bool> opt_hint_streams("spw-hint-streams", init(true), desc("Announce long streams to the runtime"));
opt<bool> opt_reach("spw-reach", init(true),
                    desc("Ask for raw addresses of blocks that are in memory, but not at their own"));

}  // namespace spw::pass
