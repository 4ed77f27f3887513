// Entry points that instrumented code calls by LLVM's preserve_most convention: every general register but r11 keeps its
// value (rax holds the result where there is one). The work is done by ordinary C functions of the same arguments.
        .text

        .macro  PRESERVE_MOST name, target, returns
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        pushq   %rcx
        pushq   %rdx
        pushq   %rsi
        pushq   %rdi
        pushq   %r8
        pushq   %r9
        pushq   %r10
        pushq   %rax
        call    \target
        .if \returns
        addq    $8, %rsp
        .else
        popq    %rax
        .endif
        popq    %r10
        popq    %r9
        popq    %r8
        popq    %rdi
        popq    %rsi
        popq    %rdx
        popq    %rcx
        popq    %rbp
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   \name, . - \name
        .endm

        PRESERVE_MOST __spw_load_v1, spw_translate_load, 1
        PRESERVE_MOST __spw_store_v1, spw_translate_store, 1
        PRESERVE_MOST __spw_span_v1, spw_translate_span, 1
        PRESERVE_MOST __spw_store_across_v1, spw_translate_store_across, 0

        .section .note.GNU-stack, "", @progbits
