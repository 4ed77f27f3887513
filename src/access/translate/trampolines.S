// Entry points of abi/abi.h that instrumented code calls by LLVM's preserve_most convention.
#include "base/preserve_most.inc"

        .text

        PRESERVE_MOST __spw_load_v1, spw_translate_load, 1
        PRESERVE_MOST __spw_store_v1, spw_translate_store, 1
        PRESERVE_MOST __spw_span_v1, spw_translate_span, 1
        PRESERVE_MOST __spw_store_across_v1, spw_translate_store_across, 0

        .section .note.GNU-stack, "", @progbits
