// The switch between the plain and the instrumented version of
// recompiled code (abi/abi.h, "Versions"), as the runtime writes it.
//
// Threads: any. Ordering: none; code may read it late. Lifetime: its page is mapped by access/mapped/first/first.cc
// before any code of the process runs, for the life of the process.
#pragma once

#include "abi/abi.h"
#include "base/atomic.h"
#include "base/units.h"
#include "platform/memory.h"

namespace spw::access {

class VersionSwitch {
 public:
  // Before the first set().
  static Status make_writable() {
    return platform::protect(reinterpret_cast<void*>(SPW_VERSION_SWITCH), kMmuPageBytes,
                             platform::Protection::kReadWrite);
  }
  static bool is_set() { return byte().load_relaxed() != 0; }
  static void set(bool instrumented) {
    // All code reads that byte: its line stays shared where nothing changes.
    if (is_set() != instrumented) byte().store_relaxed(instrumented ? 1 : 0);
  }

 private:
  static Atomic<int8_t>& byte() { return *reinterpret_cast<Atomic<int8_t>*>(SPW_VERSION_SWITCH); }
};

}  // namespace spw::access
