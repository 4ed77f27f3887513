#include "platform/machine.h"

#include <gnu/libc-version.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
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

// What a version of control groups calls its files.
struct GroupFiles {
  const char* limit;
  const char* usage;
  std::string_view idle_file_field;  // of memory.stat, with the groups below
};
constexpr GroupFiles kV1{"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"};
constexpr GroupFiles kV2{"/memory.max", "/memory.current", "inactive_file"};

struct LimitedGroup {
  std::string directory;
  const GroupFiles& files;
  uint64_t limit_bytes;

  // Empty where there is no such file.
  std::string text_of(const char* file) const {
    auto text = read_small_file(directory + file);
    return text ? *text : std::string();
  }

  // File pages that nobody uses go when they are asked to.
  uint64_t available_bytes() const {
    const uint64_t usage = whole_number(text_of(files.usage)).value_or(0);
    const uint64_t idle = number_field(text_of("/memory.stat"), files.idle_file_field).value_or(0);
    const uint64_t used = usage - std::min(usage, idle);
    return limit_bytes - std::min(limit_bytes, used);
  }
};

// The group at mount + group and all groups above it that have a limit. A text ("max") is none, and so is a file that
// is not there: inside a container the path often names a place outside of what is mounted.
template <class Visit>
void visit_upwards(const std::string& mount, std::string group, const GroupFiles& files, Visit visit) {
  // cgroup v1 writes "no limit" as a number close to 2^63.
  constexpr uint64_t kNoLimitV1 = uint64_t{1} << 62;
  while (true) {
    auto text = read_small_file(mount + group + files.limit);
    auto limit = text ? whole_number(*text) : std::nullopt;
    if (limit && *limit < kNoLimitV1) visit(LimitedGroup{mount + group, files, *limit});
    size_t slash = group.rfind('/');
    if (slash == group.npos) return;
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

// All groups with a limit that the text of /proc/self/cgroup names.
template <class Visit>
void for_each_limited_group(std::string_view proc_cgroup, const std::string& mount, Visit visit) {
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
    if (controllers.empty()) visit_upwards(mount, group, kV2, visit);
    if (names_memory(controllers)) visit_upwards(mount + "/memory", group, kV1, visit);
  }
}

// The smallest of what `bytes_of` says of each.
template <class BytesOf>
std::optional<uint64_t> smallest(std::string_view proc_cgroup, const std::string& mount, BytesOf bytes_of) {
  std::optional<uint64_t> least;
  for_each_limited_group(proc_cgroup, mount, [&](const LimitedGroup& group) {
    const uint64_t bytes = bytes_of(group);
    least = std::min(least.value_or(bytes), bytes);
  });
  return least;
}

constexpr const char* kOwnGroups = "/proc/self/cgroup";
constexpr const char* kGroupsMount = "/sys/fs/cgroup";

}  // namespace

unsigned runnable_threads() {
  // "0.31 0.25 0.20 3/512 12345"
  auto text = read_small_file("/proc/loadavg");
  const size_t slash = text ? text->find('/') : std::string::npos;
  if (slash == std::string::npos) return 1;
  const size_t blank = text->rfind(' ', slash);
  const auto count = whole_number(std::string_view(*text).substr(blank + 1, slash - blank - 1));
  return std::max(static_cast<unsigned>(count.value_or(1)), 1u);
}

unsigned cpu_count() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
  return static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));  // more than 1024 processors
}

int glibc_minor() {
  const std::string_view version = gnu_get_libc_version();
  return version.starts_with("2.") ? atoi(version.data() + 2) : INT_MAX;
}

uint64_t mappings_max() {
  constexpr uint64_t kDefault = 65530;
  auto text = read_small_file("/proc/sys/vm/max_map_count");
  return text ? whole_number(*text).value_or(kDefault) : kDefault;
}

Result<uint64_t> memory_total_bytes() { return memory_field("MemTotal:"); }
Result<uint64_t> memory_available_bytes() { return memory_field("MemAvailable:"); }
Result<uint64_t> swap_total_bytes() { return memory_field("SwapTotal:"); }

std::optional<uint64_t> cgroup_memory_limit_bytes() {
  auto text = read_small_file(kOwnGroups);
  return text ? cgroup_memory_limit_bytes(*text, kGroupsMount) : std::nullopt;
}

std::optional<uint64_t> cgroup_memory_limit_bytes(std::string_view proc_cgroup, const std::string& mount) {
  return smallest(proc_cgroup, mount, [](const LimitedGroup& group) { return group.limit_bytes; });
}

std::optional<uint64_t> cgroup_memory_available_bytes() {
  auto text = read_small_file(kOwnGroups);
  return text ? cgroup_memory_available_bytes(*text, kGroupsMount) : std::nullopt;
}

std::optional<uint64_t> cgroup_memory_available_bytes(std::string_view proc_cgroup,
                                                      const std::string& mount) {
  return smallest(proc_cgroup, mount, [](const LimitedGroup& group) { return group.available_bytes(); });
}

}  // namespace spw::platform
