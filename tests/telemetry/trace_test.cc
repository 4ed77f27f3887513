#include "telemetry/trace.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

namespace spw::telemetry {
namespace {

std::vector<TraceEntry> all_of(const TraceRing& ring, uint64_t from = 0) {
  std::vector<TraceEntry> entries;
  ring.read(from, entries);
  std::ranges::sort(entries, {}, &TraceEntry::number);
  return entries;
}

TEST(TraceRing, gives_what_was_noted) {
  const auto ring = std::make_unique<TraceRing>();
  EXPECT_TRUE(all_of(*ring).empty());
  ring->note(TraceEvent::kMissed, 5, 7200, 11);
  ring->note(TraceEvent::kLimit, kTraceNoBlock, UINT64_MAX, 12);
  const auto entries = all_of(*ring);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].event, TraceEvent::kMissed);
  EXPECT_EQ(entries[0].block, 5u);
  EXPECT_EQ(entries[0].value, 7200u);
  EXPECT_EQ(entries[0].at_ns, 11u);
  EXPECT_EQ(entries[1].block, kTraceNoBlock);
  EXPECT_EQ(entries[1].value, kTraceValueMax);
  EXPECT_EQ(all_of(*ring, 1).size(), 1u);
}

TEST(TraceRing, keeps_the_last_ones) {
  const auto ring = std::make_unique<TraceRing>();
  constexpr uint64_t kNoted = 3 * TraceRing::kEntries + 5;
  for (uint64_t i = 0; i < kNoted; ++i) ring->note(TraceEvent::kEvicted, i, 0, i);
  const auto entries = all_of(*ring);
  ASSERT_EQ(entries.size(), TraceRing::kEntries);
  for (uint64_t i = 0; i < TraceRing::kEntries; ++i) {
    EXPECT_EQ(entries[i].number, kNoted - TraceRing::kEntries + i);
    EXPECT_EQ(entries[i].block, entries[i].number);
  }
}

// Block, value and time of an entry are the same number.
TEST(TraceRing, a_reader_never_sees_parts_of_two_entries) {
  const auto ring = std::make_unique<TraceRing>();
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (uint64_t i = 0; !done; ++i) ring->note(TraceEvent::kWritten, i, i, i);
  });
  uint64_t seen = 0;
  while (seen < 20'000) {
    for (const TraceEntry& entry : all_of(*ring)) {
      ++seen;
      ASSERT_TRUE(entry.block == entry.number && entry.value == entry.number && entry.at_ns == entry.number)
          << entry.number << ": " << entry.block << ", " << entry.value << ", " << entry.at_ns;
    }
  }
  done = true;
  writer.join();
}

TEST(TraceText, says_what_happened) {
  EXPECT_EQ(trace_text({TraceEvent::kMissed, 0, 1, 7200, 0}), "missed, in 7.2 us");
  EXPECT_EQ(trace_text({TraceEvent::kWritten, 0, 1, 1, 0}), "written");
  EXPECT_EQ(trace_text({TraceEvent::kWritten, 0, 1, 8, 0}), "written, with what follows: 8 blocks");
  EXPECT_EQ(trace_text({TraceEvent::kFailed, 0, 1, ENOSPC, 0}), "failed: No space left on device");
  EXPECT_EQ(trace_text({TraceEvent::kLimit, 0, kTraceNoBlock, 64, 0}), "the limit is 64 frames");
  EXPECT_EQ(trace_text({TraceEvent::kWaited, 0, 1, 0, 0}), "waits for a frame no longer");
  EXPECT_EQ(trace_text({static_cast<TraceEvent>(99), 0, 1, 3, 0}), "event 99, 3");
}

}  // namespace
}  // namespace spw::telemetry
