#include "top/numbers.h"

#include <string.h>

#include <algorithm>
#include <bit>

#include "base/units.h"
#include "platform/time.h"
#include "top/text.h"

namespace spw::tool::top {

namespace {

using telemetry::Counter;
using telemetry::total;
using telemetry::Totals;

// Not believed to end with a zero.
std::string text_in(const char (&text)[telemetry::LiveHeader::kTextBytes]) {
  return {text, ::strnlen(text, sizeof text)};
}

// The file system's name of a store, for the device under it: "spill:/mnt (io_uring, O_DIRECT)" -> "/mnt".
std::string path_of_store(const std::string& store) {
  const size_t begin = store.find('/');
  if (begin == store.npos) return {};
  const size_t end =
      std::min({store.find(" (", begin), store.find('?', begin), store.find(',', begin), store.size()});
  return store.substr(begin, end - begin);
}

uint64_t difference(uint64_t more, uint64_t less) { return more - std::min(more, less); }

uint64_t dirty_blocks(const Totals& totals, uint64_t block_bytes) {
  return difference(total(totals, Counter::bytes_dirtied) / block_bytes,
                    total(totals, Counter::writebacks) + total(totals, Counter::zeros_left_out) +
                        total(totals, Counter::unstored_left_out) + total(totals, Counter::dirty_discards));
}

DeviceUse device_use(const DeviceCounts& before, const DeviceCounts& now, double seconds) {
  const auto a_second = [&](uint64_t DeviceCounts::* count) {
    return static_cast<double>(difference(now.*count, before.*count)) / seconds;
  };
  return {std::min(1.0, a_second(&DeviceCounts::busy_ms) / 1000), a_second(&DeviceCounts::waited_ms) / 1000,
          a_second(&DeviceCounts::read_bytes), a_second(&DeviceCounts::write_bytes),
          a_second(&DeviceCounts::requests)};
}

}  // namespace

uint64_t resident_blocks(const Totals& totals) {
  uint64_t came = 0;
  for (const Counter counter : {Counter::zero_fills, Counter::overwrites, Counter::adoptions, Counter::fills,
                                Counter::unit_fills, Counter::readahead_fills})
    came += total(totals, counter);
  return difference(came, total(totals, Counter::evictions) + total(totals, Counter::discards));
}

Result<PageFacts> facts_of(uint64_t process, const telemetry::LivePage& page) {
  const telemetry::LiveHeader& header = page.header();
  PageFacts facts;
  facts.process = process;
  facts.program = printable(text_in(header.program), Charset::kUtf8);
  facts.engine = printable(text_in(header.engine), Charset::kUtf8);
  const std::string store = text_in(header.store);
  facts.store = printable(store, Charset::kUtf8);
  facts.store_path = path_of_store(store);
  facts.block_bytes = header.block_bytes;
  facts.memory_cap_bytes = header.memory_cap_bytes;
  facts.frames = header.frames;
  facts.started_ns = header.started_ns;
  if (!is_power_of_two(facts.block_bytes) || facts.block_bytes < uint64_t{1} << kMinBlockShift ||
      facts.block_bytes > uint64_t{1} << kMaxBlockShift)
    return Status::sentence(EPROTO, "process " + std::to_string(process) +
                                        " says what cannot be: blocks of " +
                                        std::to_string(facts.block_bytes) + " bytes");
  return facts;
}

Look look_at(const telemetry::LivePage& page, const Device& device) {
  return {page.totals(), page.miss_latencies(), device.read(), platform::monotonic_ns()};
}

Numbers numbers_between(const Look& before, const Look& now, const PageFacts& facts) {
  Numbers numbers;
  numbers.at_s = static_cast<double>(now.at_ns) / 1e9;
  numbers.seconds = static_cast<double>(std::max<uint64_t>(difference(now.at_ns, before.at_ns), 1)) / 1e9;
  const auto count = [&](Counter counter) {
    return difference(total(now.totals, counter), total(before.totals, counter));
  };
  for (size_t i = 0; i < telemetry::kCounterCount; ++i)
    numbers.rates[i] = static_cast<double>(count(static_cast<Counter>(i))) / numbers.seconds;
  numbers.hit_ratio = telemetry::hit_ratio(count(Counter::shared_hits) + count(Counter::shared_waits),
                                           count(Counter::shared_misses));
  numbers.uses_s = numbers.rate(Counter::shared_hits) + numbers.rate(Counter::shared_waits) +
                   numbers.rate(Counter::shared_misses);
  numbers.took = summary_of(now.latencies.since(before.latencies));
  numbers.waiting = numbers.rate(Counter::fill_wait_ns) / 1e9;
  const uint64_t resident = resident_blocks(now.totals);
  numbers.resident_bytes = resident * facts.block_bytes;
  numbers.dirty_bytes = dirty_blocks(now.totals, facts.block_bytes) * facts.block_bytes;
  numbers.frames_share =
      static_cast<double>(resident) / static_cast<double>(std::max<uint64_t>(facts.frames, 1));
  numbers.compressed_bytes = difference(total(now.totals, Counter::compressed_memory_taken),
                                        total(now.totals, Counter::compressed_memory_given_back));
  if (const uint64_t bytes = total(now.totals, Counter::compressed_bytes); bytes > 0)
    numbers.compressed_ratio = static_cast<double>(total(now.totals, Counter::compressed_pages)) *
                               kMmuPageBytes / static_cast<double>(bytes);
  if (before.device && now.device) numbers.device = device_use(*before.device, *now.device, numbers.seconds);
  return numbers;
}

void History::add(const Numbers& numbers) {
  samples_.push_back(numbers);
  if (samples_.size() > kSamplesMax) samples_.pop_front();
}

double History::span_s(size_t samples) const {
  if (samples_.empty() || samples == 0) return 0;
  const Numbers& oldest = samples_[samples_.size() - std::min(samples, samples_.size())];
  return samples_.back().at_s - oldest.at_s + oldest.seconds;
}

}  // namespace spw::tool::top
