// What the kernel counts of a block device: how busy it is, whoever keeps it so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace spw::tool::top {

struct DeviceCounts {
  uint64_t requests = 0;
  uint64_t read_bytes = 0, write_bytes = 0;
  uint64_t busy_ms = 0;    // time with something in flight
  uint64_t waited_ms = 0;  // over all requests: divided by the time, the mean number in flight
};

// Of the device that holds the file or directory; nothing where it is on none (tmpfs) or the kernel does not say.
class Device {
 public:
  explicit Device(const std::string& path);
  const std::string& name() const { return name_; }
  std::optional<DeviceCounts> read() const;

 private:
  std::string name_;
  std::string counts_file_;
};

}  // namespace spw::tool::top
