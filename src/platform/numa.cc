#include "platform/numa.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>

namespace spw::platform {

namespace {

constexpr char kNodes[] = "/sys/devices/system/node/";

std::vector<unsigned> numbers_in_file(const std::string& name) {
  std::ifstream file(kNodes + name);
  std::string line;
  std::getline(file, line);
  return numbers_in(line);
}

// Of this node's processors those that the thread may run on.
cpu_set_t allowed_on(unsigned node) {
  cpu_set_t of_node, allowed;
  CPU_ZERO(&of_node);
  CPU_ZERO(&allowed);
  for (const unsigned cpu : numbers_in_file("node" + std::to_string(node) + "/cpulist"))
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &of_node);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return of_node;
  CPU_AND(&of_node, &of_node, &allowed);
  return of_node;
}

}  // namespace

std::vector<unsigned> numbers_in(std::string_view list) {
  std::vector<unsigned> numbers;
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at < end) {
    unsigned first = 0;
    auto [after, error] = std::from_chars(at, end, first);
    if (error != std::errc()) return {};
    unsigned last = first;
    if (after < end && *after == '-') {
      auto [after_last, bad_last] = std::from_chars(after + 1, end, last);
      if (bad_last != std::errc() || last < first) return {};
      after = after_last;
    }
    for (unsigned number = first; number <= last; ++number) numbers.push_back(number);
    if (after < end && *after != ',') return {};
    at = after + 1;
  }
  return numbers;
}

std::vector<unsigned> nodes_with_processors() {
  std::vector<unsigned> nodes = numbers_in_file("has_cpu");
  std::erase_if(nodes, [](unsigned node) {
    const cpu_set_t left = allowed_on(node);
    return CPU_COUNT(&left) == 0;
  });
  if (nodes.empty()) nodes.push_back(current_node());
  return nodes;
}

unsigned current_node() {
  unsigned cpu = 0, node = 0;
  return ::syscall(SYS_getcpu, &cpu, &node, nullptr) == 0 ? node : 0;
}

Status run_on_node(unsigned node) {
  const cpu_set_t set = allowed_on(node);
  if (CPU_COUNT(&set) == 0) return Status(EINVAL, "finding the processors of node " + std::to_string(node));
  if (::sched_setaffinity(0, sizeof set, &set) != 0)
    return Status(errno, "binding a thread to node " + std::to_string(node));
  return Status::ok();
}

Status prefer_node(void* address, uint64_t bytes, unsigned node) {
  constexpr unsigned kNodesMax = 64;
  if (node >= kNodesMax) return Status(EINVAL, "placing memory on node " + std::to_string(node));
  int policy = MPOL_DEFAULT;
  if (::syscall(SYS_get_mempolicy, &policy, nullptr, 0, nullptr, 0) == 0 && policy != MPOL_DEFAULT)
    return Status(EEXIST, "placing memory on node " + std::to_string(node));
  const unsigned long mask = 1UL << node;
  if (::syscall(SYS_mbind, address, bytes, MPOL_PREFERRED, &mask, kNodesMax + 1, 0) != 0)
    return Status(errno, "placing memory on node " + std::to_string(node));
  return Status::ok();
}

}  // namespace spw::platform
