// Functions of the C library and of libatomic that store to memory they are given: which, where and how much. Called,
// not inlined, they are code that nobody instruments.
//
// Limits: what is formatted (sprintf, scanf), and functions that are not in the table, are not announced. Nor is what a
// compare-and-swap of libatomic's writes to its second argument when it fails. A comparison that qsort calls must not
// store to persistent memory itself: its announcement would come between qsort's and what qsort stores.
#pragma once

#include "llvm/IR/InstrTypes.h"
#include "pass/durable/store_marks.h"
#include "pass/unmanaged_pointers.h"

namespace spw::pass {

// Whether `call` is one that mark_library_store() has something to announce of.
bool is_library_store(const llvm::CallBase& call, const UnmanagedPointers& unmanaged);

// Splits the block where the number of bytes has to be asked for: only for persistent memory.
void mark_library_store(llvm::CallBase& call, StoreMarks& marks);

}  // namespace spw::pass
