// compiler/library, as the compiler made it.
  .section .rodata
  .global spw_library_bitcode_begin, spw_library_bitcode_end
  .hidden spw_library_bitcode_begin, spw_library_bitcode_end
  .balign 16
spw_library_bitcode_begin:
  .incbin SPW_LIBRARY_BITCODE
spw_library_bitcode_end:
  .section .note.GNU-stack, "", @progbits
