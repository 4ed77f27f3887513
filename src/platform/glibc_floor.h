// How the files beside this bind to the versions of glibc's symbols that every glibc has (glibc_floor.cc).
#pragma once

// Stands before glibc's for what is linked together, and is not seen outside.
#define SPW_HIDDEN extern "C" __attribute__((visibility("hidden")))
// Declares spw_old_NAME, which is glibc's NAME of that version.
#define SPW_OLD(name, version)              \
  extern "C" decltype(name) spw_old_##name; \
  __asm__(".symver spw_old_" #name "," #name "@GLIBC_" version)
