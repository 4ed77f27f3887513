// What the machine offers this process: processors and memory, within affinity masks and control groups.
//
// Threads: any. Values are as of the call and change under it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace spw::platform {

// Threads of the whole machine that run or wait for a processor, the caller among them; 1 where that cannot be read.
unsigned runnable_threads();

// Processors this thread may run on, at least 1.
unsigned cpu_count();

// MemTotal and MemAvailable of the whole machine.
Result<uint64_t> memory_total_bytes();
Result<uint64_t> memory_available_bytes();
Result<uint64_t> swap_total_bytes();

// The smallest limit of this process's control group and the groups above it (v2 memory.max, v1
// memory.limit_in_bytes); nothing where there is none.
std::optional<uint64_t> cgroup_memory_limit_bytes();

// The least that one of those groups leaves of its limit: what all its processes use counts, but for file pages that go
// when memory is wanted. Nothing where there is no limit.
std::optional<uint64_t> cgroup_memory_available_bytes();

// The same for a given text of /proc/self/cgroup and mount point of the groups (for tests).
std::optional<uint64_t> cgroup_memory_limit_bytes(std::string_view proc_cgroup, const std::string& mount);
std::optional<uint64_t> cgroup_memory_available_bytes(std::string_view proc_cgroup, const std::string& mount);

// N of glibc 2.N, the one that is loaded. INT_MAX: another libc, or a later one.
int glibc_minor();

// Mappings that a process may have (vm.max_map_count).
uint64_t mappings_max();

}  // namespace spw::platform
