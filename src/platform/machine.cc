#include "platform/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "platform/proc_text.h"

namespace spw::platform {

namespace {

Result<uint64_t> memory_field(std::string_view name) {
  auto text = read_small_file("/proc/meminfo");
  if (!text) return text.status();
  auto bytes = kib_field(*text, name);
  if (!bytes) return Status::sentence(ENODATA, "no " + std::string(name) + " in /proc/meminfo");
  return *bytes;
}

// The smallest number in `file` of the group at mount + group and of all groups above it. A text ("max") is
// no limit, and so is a file that is not there: inside a container the path often names a place outside of
// what is mounted.
std::optional<uint64_t> smallest_limit(const std::string& mount, std::string group, const char* file) {
  // cgroup v1 writes "no limit" as a number close to 2^63.
  constexpr uint64_t kNoLimitV1 = uint64_t{1} << 62;
  std::optional<uint64_t> smallest;
  while (true) {
    auto text = read_small_file(mount + group + "/" + file);
    auto limit = text ? whole_number(*text) : std::nullopt;
    if (limit && *limit < kNoLimitV1) smallest = std::min(smallest.value_or(*limit), *limit);
    size_t slash = group.rfind('/');
    if (slash == group.npos) return smallest;
    group.resize(slash);
  }
}

// Whether the controllers of a v1 line ("cpu,memory") name memory.
bool names_memory(std::string_view controllers) {
  while (!controllers.empty()) {
    size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == "memory") return true;
    controllers.remove_prefix(comma == controllers.npos ? controllers.size() : comma + 1);
  }
  return false;
}

}  // namespace

unsigned cpu_count() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
  return static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));  // more than 1024 processors
}

Result<uint64_t> memory_total_bytes() { return memory_field("MemTotal:"); }
Result<uint64_t> memory_available_bytes() { return memory_field("MemAvailable:"); }

std::optional<uint64_t> cgroup_memory_limit_bytes() {
  auto text = read_small_file("/proc/self/cgroup");
  return text ? cgroup_memory_limit_bytes(*text, "/sys/fs/cgroup") : std::nullopt;
}

std::optional<uint64_t> cgroup_memory_limit_bytes(std::string_view proc_cgroup, const std::string& mount) {
  std::optional<uint64_t> smallest;
  while (!proc_cgroup.empty()) {
    size_t end = proc_cgroup.find('\n');
    std::string_view line = proc_cgroup.substr(0, end);
    proc_cgroup.remove_prefix(end == proc_cgroup.npos ? proc_cgroup.size() : end + 1);
    size_t first = line.find(':');
    size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    std::string_view controllers = line.substr(first + 1, second - first - 1);
    std::string group(line.substr(second + 1));
    if (group == "/") group.clear();
    std::optional<uint64_t> limit;
    if (controllers.empty()) limit = smallest_limit(mount, group, "memory.max");
    if (names_memory(controllers)) limit = smallest_limit(mount + "/memory", group, "memory.limit_in_bytes");
    if (limit) smallest = std::min(smallest.value_or(*limit), *limit);
  }
  return smallest;
}

}  // namespace spw::platform
