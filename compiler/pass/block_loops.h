// Block-wise loops: loops whose accesses are all streams of constant stride run granule by granule, on raw addresses.
//
//   preheader ──▶ dispatch ◀───────────────────────────┬──────────────┐
//                    │ one translation for each stream; │              │
//                    │ n = iterations that all stay in  │              │
//                    │ their granules                   │              │
//        crossing or │ few iterations  │ otherwise      │              │
//                    ▼                 ▼                │              │
//                slow loop          fast loop ──n done──┤ (more left)  │
//      (accesses translated         (address + delta,   │              │
//       on their own)                counts n down)     │              │
//          │  │ one iteration done ────────────────────────────────────┘
//          ▼  ▼                          ▼
//         exit ◀─────────────────────────┘ (none left)
//
// The fast loop is the loop itself, whole vector bodies included; the slow one is its copy. The slow loop runs a single
// iteration when a stream crosses a granule, and all of them when there are too few for a dispatch to pay.
// Invariant: a dispatch translates fewer streams than SPW_STABLE_TRANSLATIONS and the fast loop translates nothing, so
// every delta holds until the next dispatch.
// Limits: innermost loops with a known number of iterations, one exit at the end, no call, every access executed in
// every iteration. (An access that an iteration may skip could lie where no block is.)
#pragma once

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/PassManager.h"
#include "pass/translator.h"

namespace spw::pass {

// Makes the loops of the translator's function block-wise where that can be done. `pending`: what has to be translated
// one by one; it loses the accesses of fast loops and gains those of slow loops. True when the function changed.
bool make_loops_block_wise(Translator& translator, llvm::FunctionAnalysisManager& analyses,
                           llvm::SetVector<llvm::Instruction*>& pending);

}  // namespace spw::pass
