#include "top/device.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>

namespace spw::tool::top {

namespace {
constexpr uint64_t kSectorBytes = 512;  // the unit of this file, whatever the device's own is
}  // namespace

Device::Device(const std::string& path) {
  struct stat seen{};
  if (::stat(path.c_str(), &seen) != 0) return;
  const std::string link =
      "/sys/dev/block/" + std::to_string(major(seen.st_dev)) + ":" + std::to_string(minor(seen.st_dev));
  std::error_code error;
  const auto device = std::filesystem::canonical(link, error);
  if (error) return;
  name_ = device.filename();
  counts_file_ = device / "stat";
}

// Documentation/block/stat.rst of the kernel has the order.
std::optional<DeviceCounts> Device::read() const {
  std::ifstream file(counts_file_);
  uint64_t reads, reads_merged, sectors_read, read_ms, writes, writes_merged, sectors_written, write_ms,
      in_flight, busy_ms;
  if (!(file >> reads >> reads_merged >> sectors_read >> read_ms >> writes >> writes_merged >>
        sectors_written >> write_ms >> in_flight >> busy_ms))
    return std::nullopt;
  return DeviceCounts{reads + writes, sectors_read * kSectorBytes, sectors_written * kSectorBytes, busy_ms,
                      read_ms + write_ms};
}

}  // namespace spw::tool::top
