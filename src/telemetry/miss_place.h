// Where in the program's code this thread is: for whoever asks which functions misses are in.
//
// Of a fault the handler says it (FaultPlace). Everything else was called by the program, from recompiled code, by the
// public API or a function of libc that is interposed: it is where the innermost call into this library returns to. The
// runtime is compiled with frame pointers, its assembler too, so that is found by following them up, without a table.
// The program's own frames are never looked at.
// Threads: any, of itself. Limits: kFramesMax frames of the runtime's; 0 beyond, and in a thread of its own.
#pragma once

#include <cstdint>

namespace spw::telemetry {

inline constexpr int kFramesMax = 48;

// An address in the program or a library of its; 0: not known.
uintptr_t miss_place();

// For as long as it lives the thread serves a fault of this instruction.
class FaultPlace {
 public:
  explicit FaultPlace(uintptr_t instruction);
  ~FaultPlace();
  FaultPlace(const FaultPlace&) = delete;
  FaultPlace& operator=(const FaultPlace&) = delete;

 private:
  const uintptr_t before_;
};

}  // namespace spw::telemetry
