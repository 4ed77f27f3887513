// Of named_program.cc: what is inlined into it.
#pragma once

extern "C" void place(const int* number);

inline __attribute__((always_inline)) int inlined_helper(int number) {
  place(&number);  // LINE inlined
  return number;
}
