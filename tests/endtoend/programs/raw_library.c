/* A library that makes system calls without libc. */
#include "raw_call.h"

long call_of_library(long number, long a, long b, long c, long d, long e, long f) {
  return raw_call(number, a, b, c, d, e, f);
}
