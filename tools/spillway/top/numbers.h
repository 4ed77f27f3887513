// What happened to a program between two looks, as numbers.
//
// The counters are another process's memory: a count may have gone down, or be anything. Then numbers are wrong, never
// undefined.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "telemetry/live_page.h"
#include "top/device.h"

namespace spw::tool::top {

// The header of a page, checked: block_bytes is a size that blocks may have, texts are printable.
struct PageFacts {
  uint64_t process = 0;  // its number here
  std::string program, engine, store;
  std::string store_path;  // of the store, as it is; "" where there is none
  uint64_t block_bytes = 4096, memory_cap_bytes = 0, frames = 0, started_ns = 0;
};
Result<PageFacts> facts_of(uint64_t process, const telemetry::LivePage& page);

// In frames, by what came and went.
uint64_t resident_blocks(const telemetry::Totals& totals);

struct Look {
  telemetry::Totals totals{};
  telemetry::Latencies latencies;
  std::optional<DeviceCounts> device;
  uint64_t at_ns = 0;
};
Look look_at(const telemetry::LivePage& page, const Device& device);

struct DeviceUse {
  double busy = 0;  // share of the time
  double in_flight = 0, read_bytes_s = 0, write_bytes_s = 0, requests_s = 0;
};

struct Numbers {
  double at_s = 0, seconds = 0;  // when, and over how long
  // Each second, in the order of telemetry::Counter.
  std::array<double, telemetry::kCounterCount> rates{};
  double rate(telemetry::Counter counter) const { return rates[static_cast<size_t>(counter)]; }
  std::optional<double> hit_ratio;
  double uses_s = 0;  // of the shared cache
  telemetry::LatencySummary took;
  double waiting = 0;  // threads that waited for reads, on average
  uint64_t resident_bytes = 0, dirty_bytes = 0;
  double frames_share = 0;
  uint64_t compressed_bytes = 0;  // of memory, for compressed pages
  double compressed_ratio = 0;    // bytes of pages for each byte that they came to, so far; 0: none did
  std::optional<DeviceUse> device;
};
Numbers numbers_between(const Look& before, const Look& now, const PageFacts& facts);

// The last kSamplesMax, for graphs.
class History {
 public:
  static constexpr size_t kSamplesMax = 1000;
  void add(const Numbers& numbers);
  bool is_empty() const { return samples_.empty(); }
  size_t size() const { return samples_.size(); }
  const Numbers& newest() const { return samples_.back(); }
  // The seconds that the last `samples` cover.
  double span_s(size_t samples) const;
  template <class Value>
  std::vector<double> values(Value value) const {
    std::vector<double> all;
    for (const Numbers& numbers : samples_) all.push_back(value(numbers));
    return all;
  }

 private:
  std::deque<Numbers> samples_;
};

}  // namespace spw::tool::top
