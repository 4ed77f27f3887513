// vfork() of the program: what is buffered reaches the kernel first, since neither the child nor what it executes has it. libc's own
// returns twice to its caller, so it is jumped to with the stack as it was.
        .text
        .globl  vfork
        .type   vfork, @function
vfork:
        .cfi_startproc
        endbr64
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    spw_before_vfork
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        jmp     *%rax
        .cfi_endproc
        .size   vfork, . - vfork

        .section .note.GNU-stack, "", @progbits
