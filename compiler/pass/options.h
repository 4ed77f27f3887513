// The switches of the pass, one for every optimisation, so that each can be measured and ruled out alone.
// Given as `-mllvm -spw-...`; the drivers load the plugin early enough for clang to know them.
#pragma once

#include "llvm/Support/CommandLine.h"

namespace spw::pass {

// kNone: nothing is written for managed memory; what is for durable sections is.
enum class EngineKind { kTranslated, kMapped, kNone };

extern llvm::cl::opt<EngineKind> opt_engine;
// At a compile step whose module is instrumented when it is linked.
extern llvm::cl::opt<bool> opt_mark_engine;

// Both engines.
extern llvm::cl::opt<bool> opt_skip_unmanaged;
extern llvm::cl::opt<bool> opt_verify;
extern llvm::cl::opt<bool> opt_library;

// Durable sections, with any engine.
extern llvm::cl::opt<bool> opt_durable;
extern llvm::cl::opt<bool> opt_durable_merge;

// The translated engine.
extern llvm::cl::opt<bool> opt_merge;
extern llvm::cl::opt<bool> opt_block_loops;
extern llvm::cl::opt<bool> opt_windows;
extern llvm::cl::opt<unsigned> opt_window_blocks_max;
extern llvm::cl::opt<bool> opt_count_hits;
extern llvm::cl::opt<bool> opt_trust_alignment;
extern llvm::cl::opt<unsigned> opt_inline_copy_bytes_max;

// Both engines.
extern llvm::cl::opt<bool> opt_versions;
extern llvm::cl::opt<bool> opt_polls;

// The mapped engine.
extern llvm::cl::opt<bool> opt_hint_hoist;
extern llvm::cl::opt<bool> opt_hint_merge;
extern llvm::cl::opt<bool> opt_hint_dominated;
extern llvm::cl::opt<bool> opt_hint_block_wise;
extern llvm::cl::opt<bool> opt_hint_chunks;
extern llvm::cl::opt<bool> opt_hint_streams;
extern llvm::cl::opt<bool> opt_reach;

}  // namespace spw::pass
