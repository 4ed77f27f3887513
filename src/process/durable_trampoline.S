// Entry point of abi/durable.h that instrumented code calls by LLVM's preserve_most convention.
#include "base/preserve_most.inc"

        .text

        PRESERVE_MOST __spw_durable_store_v1, spw_durable_before_store, 0

        .section .note.GNU-stack, "", @progbits
