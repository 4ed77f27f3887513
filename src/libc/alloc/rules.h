// Which allocations are managed. This is the only place that says so:
//
//   by size    of at least the threshold, or any when the native bytes that are live exceed the quota; of mappings,
//              those of at least the threshold, and when what is native exceeds the quota, of kOverQuotaBytes
//   by caller  redirected calls of recompiled code; calls by the ordinary names, from any code, only where the whole
//              process is managed, and not those that have to stay native (managed_for)
//
// Threads: any. Set when the library is loaded and by spw_set_option, before an engine is made, so that a process that
// never needs one makes none; and in a forked child, where nothing more is managed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/in_runtime.h"
#include "libc/alloc/quota.h"

namespace spw::libc {

struct AllocationRules {
  uint64_t threshold_bytes = UINT64_MAX;
  uint64_t quota_bytes = UINT64_MAX;
  bool whole_process = false;  // managed memory is at its own addresses, so any code can use it
};

void set_allocation_rules(const AllocationRules& rules);

namespace detail {
extern Atomic<uint64_t> threshold_bytes, quota_bytes;
extern Atomic<bool> whole_process, native_over_quota;
bool stays_native(const void* caller);
}  // namespace detail

// Of memory that is not managed the process has more than the quota, in whatever way it came by it.
inline void set_native_over_quota(bool is_over) { detail::native_over_quota.store_relaxed(is_over); }
inline bool is_native_over_quota() { return detail::native_over_quota.load_relaxed(); }
// Then mappings from here on are managed, whatever the threshold.
inline constexpr size_t kOverQuotaBytes = 64 * 1024;

inline bool mapping_managed_by_size(size_t bytes) {
  return bytes >= detail::threshold_bytes.load_relaxed() ||
         (bytes >= kOverQuotaBytes && detail::native_over_quota.load_relaxed());
}

inline bool managed_by_size(size_t bytes) {
  return bytes >= detail::threshold_bytes.load_relaxed() ||
         native_bytes() + bytes > detail::quota_bytes.load_relaxed();
}

// Whether what any code allocates or maps, the runtime's own apart, goes by size.
inline bool manages_any_code() { return detail::whole_process.load_relaxed() && !InRuntime::here(); }

// A call by an ordinary name. `caller`: the address that it returns to. What this library asks for itself is native;
// what libc and the loader do, where the kernel cannot reach managed memory.
inline bool managed_for(size_t bytes, const void* caller) {
  return detail::whole_process.load_relaxed() && managed_by_size(bytes) && !detail::stays_native(caller) &&
         !InRuntime::here();
}

}  // namespace spw::libc
