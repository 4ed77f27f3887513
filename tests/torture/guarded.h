// Accesses that may fault: what signal came, and where.
#pragma once

#include <csetjmp>
#include <csignal>
#include <cstdint>

#include "log.h"
#include "slots.h"

namespace torture {

// Of one thread.
struct Catch {
  sigjmp_buf back;
  volatile int armed;
  int signal;
  int code;
  char* address;
};

extern thread_local Catch caught;

void catch_faults();

// True if `access` came to its end; else `caught` has the signal. What `access` changes has to be in memory that is
// read anew (volatile, or behind a pointer), since it may stop anywhere.
template <typename Access>
__attribute__((noinline)) bool guarded(Access access) {
  if (sigsetjmp(caught.back, 0) != 0) return false;
  caught.armed = 1;
  access();
  caught.armed = 0;
  return true;
}

// Writes down what was caught, with its address in the slot.
void log_caught(Log& log, const Slot& slot);
void log_caught(Log& log, const char* base);

}  // namespace torture
