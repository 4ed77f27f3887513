// Trampolines to entry points of the preserve_most convention, for fake runtimes: they keep every general register but
// r11 (and rax where it is the result) and clobber all that a callee may: r11, and the vector registers by
// fake_clobber, which SPW_FAKE_CLOBBER defines.
#ifndef SPW_TESTS_COMPILER_TRAMPOLINE_H
#define SPW_TESTS_COMPILER_TRAMPOLINE_H

#define SPW_TRAMPOLINE(name, target, keep_rax, restore_rax)                                                 \
  __asm__(".text\n.globl " name "\n.type " name ",@function\n" name ":\n.cfi_startproc\n" keep_rax          \
          "push %rcx\npush %rdx\npush %rsi\npush %rdi\npush %r8\npush %r9\npush %r10\n"                     \
          "push %rbp\nmov %rsp, %rbp\n.cfi_def_cfa_register rbp\nand $-16, %rsp\ncall " target              \
          "@PLT\ncall fake_clobber\n"                                                                       \
          "mov %rbp, %rsp\npop %rbp\npop %r10\npop %r9\npop %r8\npop %rdi\npop %rsi\npop %rdx\npop "        \
          "%rcx\n" restore_rax                                                                              \
          "mov $0x6b6b6b6b, %r11d\n.cfi_def_cfa_register rsp\nret\n.cfi_endproc\n.size " name ", . - " name \
          "\n")

#define SPW_ALL16(insn, reg)                                                                              \
  insn(reg, 0) insn(reg, 1) insn(reg, 2) insn(reg, 3) insn(reg, 4) insn(reg, 5) insn(reg, 6) insn(reg, 7) \
      insn(reg, 8) insn(reg, 9) insn(reg, 10) insn(reg, 11) insn(reg, 12) insn(reg, 13) insn(reg, 14)     \
          insn(reg, 15)
#define SPW_SSE(reg, n) "pcmpeqd %" reg #n ", %" reg #n "\n"
#define SPW_AVX(reg, n) "vcmptrueps %" reg #n ", %" reg #n ", %" reg #n "\n"
#define SPW_AVX512(reg, n) "vpternlogd $255, %" reg #n ", %" reg #n ", %" reg #n "\n"
#define SPW_MASK(reg, n) "kxnorw %" reg #n ", %" reg #n ", %" reg #n "\n"
/* 0: SSE, 1: AVX, 2: AVX-512: which vector registers the trampolines clobber. */
extern __attribute__((visibility("hidden"))) int __spw_fake_vectors;
#define SPW_FAKE_CLOBBER                                        \
  __attribute__((visibility("hidden"))) int __spw_fake_vectors; \
  SPW_FAKE_CLOBBER_CODE
/* Every file with trampolines has the code, one of them the variable. */
#define SPW_FAKE_CLOBBER_CODE                                                                                \
  __asm__(                                                                                                   \
      ".text\nfake_clobber:\nmovl __spw_fake_vectors(%rip), %r11d\ncmp $1, %r11d\nje 1f\nja 2f\n" SPW_ALL16( \
          SPW_SSE, "xmm") "ret\n1:\n" SPW_ALL16(SPW_AVX, "ymm") "ret\n2:\n" SPW_ALL16(SPW_AVX512, "zmm")     \
          SPW_AVX512("zmm", 16) SPW_AVX512("zmm", 20) SPW_AVX512("zmm", 31) SPW_MASK("k", 1)                 \
              SPW_MASK("k", 2) SPW_MASK("k", 3) SPW_MASK("k", 7) "ret\n")
static inline int fake_vectors(void) {
  return __builtin_cpu_supports("avx512f") ? 2 : __builtin_cpu_supports("avx") ? 1 : 0;
}

#endif
