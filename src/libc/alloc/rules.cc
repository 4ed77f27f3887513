#include "libc/alloc/rules.h"

#include <sys/auxv.h>

#include "libc/managed.h"
#include "libc/real.h"
#include "platform/call_dispatch.h"

namespace spw::libc {

namespace {

// Where the code of a library lies; empty until the process is managed.
struct Code {
  Atomic<uintptr_t> begin{0}, end{0};

  // By any address in it.
  void find(const void* of_it) {
    auto found = platform::code_around(of_it);
    if (!found) return;
    begin.store_relaxed(found->begin);
    end.store_relaxed(found->end);
  }
  bool contains(uintptr_t address) const {
    return address >= begin.load_relaxed() && address < end.load_relaxed();
  }
};
Code g_libc, g_loader, g_own;

}  // namespace

namespace detail {

Atomic<uint64_t> threshold_bytes{UINT64_MAX};
Atomic<uint64_t> quota_bytes{UINT64_MAX};
Atomic<bool> whole_process{false};
Atomic<bool> native_over_quota{false};

// libc gives the kernel what it allocates for itself (buffers of files and directories, results it makes room for),
// with system calls of its own; and threads that it starts for itself block every signal, where the loader allocates
// what is local to them. Where the kernel may not fault, or a signal is what serves a fault, that has to stay native.
//
// And the libstdc++ that is linked into this library has the runtime's own (the reserve for exceptions that it puts by
// when the library is loaded).
bool stays_native(const void* caller) {
  const auto address = reinterpret_cast<uintptr_t>(caller);
  if (g_own.contains(address)) return true;
  return (g_libc.contains(address) || g_loader.contains(address)) && !kernel_reaches();
}

}  // namespace detail

void set_allocation_rules(const AllocationRules& rules) {
  if (rules.whole_process) {
    g_libc.find(reinterpret_cast<const void*>(real().read));
    g_own.find(&g_own);
    g_loader.find(reinterpret_cast<const void*>(getauxval(AT_BASE)));
  }
  detail::native_over_quota.store_relaxed(false);
  detail::quota_bytes.store_relaxed(rules.quota_bytes);
  detail::threshold_bytes.store_relaxed(rules.threshold_bytes);
  detail::whole_process.store_relaxed(rules.whole_process);
}

}  // namespace spw::libc
