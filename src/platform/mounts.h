// What is mounted, as this process sees it: /proc/self/mountinfo, read again at each call.
//
// Threads: any.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace spw::platform {

struct Mount {
  std::string id;
  std::string device;  // "MAJOR:MINOR"
  std::string place;
  std::string type;    // "ext4", "fuse.sshfs"
  std::string source;  // of a filesystem on a device, its path
};

// The first that `is_it` says is the one; nullopt: none is, or there is no /proc.
std::optional<Mount> find_mount(const std::function<bool(const Mount&)>& is_it);
// "\040" and the like, as the kernel writes blanks in names there and in /proc/swaps.
std::string unescaped(std::string_view text);

}  // namespace spw::platform
