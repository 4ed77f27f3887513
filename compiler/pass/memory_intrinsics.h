// llvm.memcpy, memmove and memset whose pointers may be managed, and comparisons of a few bytes.
#pragma once

#include "llvm/IR/IntrinsicInst.h"
#include "pass/translator.h"
#include "pass/unmanaged_pointers.h"
#include "pass/windows.h"

namespace spw::pass {

// Small constant sizes: each pointer is translated in place and the intrinsic stays, on raw pointers; if one
// of them crosses a granule the whole is handed to the runtime. Anything else becomes a call to the runtime.
// Two ranges that overlap and do not cross lie in the same granule, so they overlap in the frame as they did
// before. True when the intrinsic was changed or replaced.
bool instrument_memory_intrinsic(llvm::MemIntrinsic& intrinsic, Translator& translator, Windows& windows,
                                 const UnmanagedPointers& unmanaged);

// Whether `call` is a redirected memcmp or bcmp of a constant length short enough to be done in place.
bool is_small_comparison(const llvm::CallBase& call);

// Compares in place, on raw pointers; by the runtime's function where a range crosses a granule.
void instrument_small_comparison(llvm::CallInst& call, Translator& translator, Windows& windows,
                                 const UnmanagedPointers& unmanaged);

}  // namespace spw::pass
