// The machine's memory nodes, and where threads run and memory lies.
// A machine without /sys/devices/system/node has one node.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace spw::platform {

// The numbers in a list as the kernel prints it, "0-3,8,10-11"; empty for what is none.
std::vector<unsigned> numbers_in(std::string_view list);

// Nodes with processors that the calling thread may run on, by number; at least one.
std::vector<unsigned> nodes_with_processors();
// The node that the calling thread runs on now.
unsigned current_node();
// The calling thread runs on this node's processors only, from now on, and of these on none that it might not before.
// EINVAL: there is no such node, or none of its processors is left; EPERM.
Status run_on_node(unsigned node);
// Pages of this memory that do not exist yet come from this node, as long as it has any. Nothing where the process has
// a policy of its own for where memory comes from (numactl): EEXIST.
Status prefer_node(void* address, uint64_t bytes, unsigned node);

}  // namespace spw::platform
