// The two moves of signal_frame.h that no compiler makes.
        .text

// bool spw_call_on_stack(bool (*call)(void*), void* argument, std::byte* top, const std::byte* copied_end): `copied_end` 0 copies
// nothing, else all from here to there is put back before this returns. Both copies are made with the stack pointer below what is
// copied: what a signal lays on the same stack meanwhile is below it.
        .globl  spw_call_on_stack
        .hidden spw_call_on_stack
        .type   spw_call_on_stack, @function
        .p2align 4
spw_call_on_stack:
        .cfi_startproc
        endbr64
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        pushq   %rbx
        .cfi_offset %rbx, -24
        pushq   %r12
        .cfi_offset %r12, -32
        movq    %rsp, %r12
        movq    %rdi, %rax
        movq    %rsi, %r8
        xorl    %ebx, %ebx
        testq   %rcx, %rcx
        jz      1f
        movq    %rcx, %rbx
        subq    %rsp, %rbx
        subq    %rbx, %rdx
1:      andq    $-16, %rdx
        movq    %rsp, %rsi
        movq    %rdx, %rdi
        movq    %rbx, %rcx
        rep movsb
        movq    %rdx, %rsp
        movq    %r8, %rdi
        call    *%rax
        movq    %rsp, %rsi
        movq    %r12, %rsp
        movq    %r12, %rdi
        movq    %rbx, %rcx
        rep movsb
        popq    %r12
        popq    %rbx
        popq    %rbp
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   spw_call_on_stack, . - spw_call_on_stack

// void spw_resume(const ucontext_t* frame, uint64_t state_components). The offsets are those of the kernel's struct ucontext. IRET takes
// any stack pointer, so it needs no room below the interrupted code's red zone, and it puts all flags back at once.
        .set    UC_R8, 40
        .set    UC_R9, 48
        .set    UC_R10, 56
        .set    UC_R11, 64
        .set    UC_R12, 72
        .set    UC_R13, 80
        .set    UC_R14, 88
        .set    UC_R15, 96
        .set    UC_RDI, 104
        .set    UC_RSI, 112
        .set    UC_RBP, 120
        .set    UC_RBX, 128
        .set    UC_RDX, 136
        .set    UC_RAX, 144
        .set    UC_RCX, 152
        .set    UC_RSP, 160
        .set    UC_RIP, 168
        .set    UC_FLAGS, 176
        .set    UC_FPREGS, 224
        .globl  spw_resume
        .hidden spw_resume
        .type   spw_resume, @function
        .p2align 4
spw_resume:
        .cfi_startproc
        endbr64
        movq    UC_FPREGS(%rdi), %rcx
        movq    %rsi, %rax
        movq    %rsi, %rdx
        shrq    $32, %rdx
        xrstor64 (%rcx)
        movl    %ss, %eax
        pushq   %rax
        .cfi_adjust_cfa_offset 8
        pushq   UC_RSP(%rdi)
        .cfi_adjust_cfa_offset 8
        pushq   UC_FLAGS(%rdi)
        .cfi_adjust_cfa_offset 8
        movl    %cs, %eax
        pushq   %rax
        .cfi_adjust_cfa_offset 8
        pushq   UC_RIP(%rdi)
        .cfi_adjust_cfa_offset 8
        movq    UC_R8(%rdi), %r8
        movq    UC_R9(%rdi), %r9
        movq    UC_R10(%rdi), %r10
        movq    UC_R11(%rdi), %r11
        movq    UC_R12(%rdi), %r12
        movq    UC_R13(%rdi), %r13
        movq    UC_R14(%rdi), %r14
        movq    UC_R15(%rdi), %r15
        movq    UC_RSI(%rdi), %rsi
        movq    UC_RBP(%rdi), %rbp
        movq    UC_RBX(%rdi), %rbx
        movq    UC_RDX(%rdi), %rdx
        movq    UC_RAX(%rdi), %rax
        movq    UC_RCX(%rdi), %rcx
        movq    UC_RDI(%rdi), %rdi
        iretq
        .cfi_endproc
        .size   spw_resume, . - spw_resume

        .section .note.GNU-stack, "", @progbits
