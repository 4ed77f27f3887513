// Entry points of abi/hints.h that recompiled code calls by LLVM's preserve_most convention.
#include "base/preserve_most.inc"

        .text

        PRESERVE_MOST __spw_hint_load_v1, spw_hint_load, 0
        PRESERVE_MOST __spw_hint_store_v1, spw_hint_store, 0

        .section .note.GNU-stack, "", @progbits
