// Entry points of abi/hints.h that recompiled code calls by LLVM's preserve_most convention.
#include "base/preserve_most.inc"

        .text

        PRESERVE_MOST __spw_hint_load_v1, spw_hint_load, 0
        PRESERVE_MOST __spw_hint_store_v1, spw_hint_store, 0
        PRESERVE_MOST __spw_reach_load_v1, spw_reach_load, 1
        PRESERVE_MOST __spw_reach_store_v1, spw_reach_store, 1

        .section .note.GNU-stack, "", @progbits
