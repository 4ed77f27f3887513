// llvm.memcpy, memmove and memset whose pointers may be managed.
#pragma once

#include "llvm/IR/IntrinsicInst.h"
#include "pass/translator.h"
#include "pass/unmanaged_pointers.h"

namespace spw::pass {

// Small constant sizes: each pointer is translated in place and the intrinsic stays, on raw pointers; if one
// of them crosses a granule the whole is handed to the runtime. Anything else becomes a call to the runtime.
// Two ranges that overlap and do not cross lie in the same granule, so they overlap in the frame as they did
// before. True when the intrinsic was changed or replaced.
bool instrument_memory_intrinsic(llvm::MemIntrinsic& intrinsic, Translator& translator,
                                 const UnmanagedPointers& unmanaged);

}  // namespace spw::pass
