// How often each of a bounded number of instructions was noted: where foreign code faults.
//
// A table of open addressing that only grows. Threads: any, signal handlers too;
// all() may run beside note() and sees each count as of some recent instant. Limits:
// kSitesMax instructions; what comes after them is counted together, as address 0.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/atomic.h"

namespace spw::telemetry {

class CallSites {
 public:
  static constexpr size_t kSitesMax = 4096;

  struct Site {
    uintptr_t instruction = 0;
    uint64_t count = 0;
  };

  void note(uintptr_t instruction);
  std::vector<Site> all() const;

 private:
  struct Slot {
    Atomic<uintptr_t> instruction{0};
    Atomic<uint64_t> count{0};
  };
  std::array<Slot, kSitesMax> slots_;
  Slot others_;
};

}  // namespace spw::telemetry
