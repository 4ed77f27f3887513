// Masked loads and stores, gathers and scatters, expanding loads and compressing stores.
//
// A masked access may name memory that nobody owns in its inactive lanes, so it is translated as a whole only
// when the SATC answers for all of it; otherwise each active lane is accessed on its own, in a loop. Gathers
// and scatters always go lane by lane: more lanes than SPW_STABLE_TRANSLATIONS could not stay translated together.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IntrinsicInst.h"
#include "pass/translator.h"
#include "pass/unmanaged_pointers.h"

namespace spw::pass {

// Whether lower_masked_access can deal with `intrinsic` (a vector of whole bytes, at most 64 lanes).
bool is_masked_access(const llvm::IntrinsicInst& intrinsic);

// Rewrites an x86 masked load or store into the generic intrinsic, which is returned; nullptr when it is none.
llvm::IntrinsicInst* generic_masked_access(llvm::IntrinsicInst& intrinsic);

// The plain accesses to single lanes that this leaves are appended to `lanes`, for the caller to translate.
void lower_masked_access(llvm::IntrinsicInst& intrinsic, Translator& translator,
                         const UnmanagedPointers& unmanaged,
                         llvm::SmallVectorImpl<llvm::Instruction*>& lanes);

}  // namespace spw::pass
