// The large pieces of managed memory, for whoever looks on: allocations of kAreaBytesMin and more, and mapped files.
// What is used most is told by name in `spillway top`.
//
// The table lies in memory that another process may read (live_page.h); without such memory nothing is noted.
// Threads: any; a change that meets another one at the same moment waits for it. Readers see an area as it is at some
// recent instant, or not at all.
// Limits: kAreasMax areas, those that come after are not noted.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic.h"

namespace spw::telemetry {

inline constexpr uint64_t kAreaBytesMin = uint64_t{1} << 20;
inline constexpr size_t kAreasMax = 512;

struct AreaSlot {
  static constexpr size_t kNameBytes = 104;
  Atomic<uint64_t> begin{0};  // 0: the slot is free. Stored last, with release
  Atomic<uint64_t> bytes{0};
  Atomic<uint64_t> site{0};  // where in the program's code it was allocated; 0: not known
  std::array<Atomic<char>, kNameBytes> name{};
};
using AreaTable = std::array<AreaSlot, kAreasMax>;

struct Area {
  uint64_t begin = 0;  // from the start of managed space on
  uint64_t bytes = 0;
  uint64_t site = 0;
  std::string name;  // of a file
};

// Areas go here from now on; nullptr: nowhere. Once a process.
void place_areas(AreaTable* table);
// [begin, begin + bytes) of managed space is one area now, allocated where the thread's AllocationSite says.
void note_area(uint64_t begin, uint64_t bytes, const std::string& file_name = {});
// What begins in [begin, begin + bytes) is none any more.
void forget_areas(uint64_t begin, uint64_t bytes);
std::vector<Area> areas_in(const AreaTable& table);
// The one that `byte` of managed space lies in now; nothing where it lies in none.
std::optional<Area> area_at(uint64_t byte);

// Says for as long as it lives who asks for memory, in this thread. Nested ones say nothing.
class AllocationSite {
 public:
  explicit AllocationSite(const void* caller);
  ~AllocationSite();
  AllocationSite(const AllocationSite&) = delete;
  AllocationSite& operator=(const AllocationSite&) = delete;

 private:
  bool is_outermost_;
};

}  // namespace spw::telemetry
