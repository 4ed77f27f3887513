// What the cache notes of what happens to blocks (telemetry/trace.h).
#include <cerrno>
#include <utility>

#include "cache_fixture.h"
#include "telemetry/live_page.h"

namespace spw::cache {
namespace {

using telemetry::LivePage;
using telemetry::TraceEntry;
using telemetry::TraceEvent;

// A live page has all threads' entries, the cache's own threads' too. A process publishes once.
const LivePage& page() {
  static const auto* const published = new LivePage(std::move(*LivePage::publish({}, 0)));
  return *published;
}

class TracedEvents : public testing::TestWithParam<Kind> {
 protected:
  TracedEvents() { page().trace_since(seen_); }

  // Those of the event in this test so far, in the order of time.
  std::vector<TraceEntry> all(TraceEvent event) {
    for (const LivePage::Traced& traced : page().trace_since(seen_)) entries_.push_back(traced.entry);
    std::vector<TraceEntry> found;
    for (const TraceEntry& entry : entries_)
      if (entry.event == event) found.push_back(entry);
    return found;
  }

 private:
  LivePage::TraceCounts seen_;
  std::vector<TraceEntry> entries_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, TracedEvents, testing::Values(kCombining, kDedicated, kPageSets), kind_name);

TEST_P(TracedEvents, misses_evictions_and_writes_are_noted_and_hits_are_not) {
  constexpr uint64_t kTouched = 40;
  CounterDelta delta;
  std::vector<TraceEntry> missed, evicted, written;
  {
    CacheFixture f(small_cache(16, GetParam()));
    for (uint64_t b = 0; b < kTouched; ++b) ASSERT_TRUE(f.write(b, b + 1));
    for (int i = 0; i < 1000; ++i) f.read(kTouched - 1);
    EXPECT_TRUE(f.cache().sync(f.client(), BlockId(0), kTouched));
    missed = all(TraceEvent::kMissed);
    evicted = all(TraceEvent::kEvicted);
    written = all(TraceEvent::kWritten);
  }
  ASSERT_EQ(missed.size(), kTouched);
  for (uint64_t b = 0; b < kTouched; ++b) {
    EXPECT_EQ(missed[b].block, b);
    EXPECT_GT(missed[b].value, 0u);
  }
  EXPECT_GE(evicted.size(), kTouched - 16);
  EXPECT_EQ(evicted.size(), delta(telemetry::Counter::evictions));
  uint64_t written_blocks = 0;
  for (const TraceEntry& entry : written) written_blocks += entry.value;
  EXPECT_EQ(written_blocks, kTouched);
}

TEST_P(TracedEvents, a_wait_for_a_frame_has_a_beginning_and_an_end) {
  Options options = small_cache(64, GetParam());
  options.frame_wait_ns_max = 50'000'000;
  CacheFixture f(options);
  std::vector<Pin> pins(64);
  for (uint64_t b = 0; b < 64; ++b)
    ASSERT_TRUE(f.cache().pin(f.client(), BlockId(b), Access::kRead, &pins[b]));
  EXPECT_TRUE(all(TraceEvent::kWaits).empty());
  EXPECT_TRUE(all(TraceEvent::kWaited).empty());
  Pin one_more;
  EXPECT_EQ(f.cache().pin(f.client(), BlockId(99), Access::kRead, &one_more).error(), EBUSY);
  const auto begun = all(TraceEvent::kWaits), ended = all(TraceEvent::kWaited);
  ASSERT_EQ(begun.size(), 1u);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(begun[0].block, 99u);
  EXPECT_EQ(ended[0].block, 99u);
  EXPECT_GE(ended[0].at_ns - begun[0].at_ns, options.frame_wait_ns_max / 2);
  for (Pin& pin : pins) f.cache().unpin(f.client(), pin.frame);
}

TEST_P(TracedEvents, a_new_limit_is_noted) {
  CacheFixture f(one_partition(256, GetParam()));
  f.cache().set_frame_limit(64);
  const auto changed = all(TraceEvent::kLimit);
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].value, 64u);
  EXPECT_EQ(changed[0].block, telemetry::kTraceNoBlock);
}

TEST_P(TracedEvents, failed_reads_and_writes_are_noted_with_their_errors) {
  CacheFixture f(small_cache(64, GetParam()), "read:1:EIO,write:1:ENOSPC");
  f.blocks().set_contents(BlockId(5), true);
  Pin pin;
  EXPECT_EQ(f.cache().pin(f.client(), BlockId(5), Access::kRead, &pin).error(), EIO);
  ASSERT_TRUE(f.write(7, 1));
  EXPECT_EQ(f.cache().sync(f.client(), BlockId(0), 64).error(), ENOSPC);
  const auto failed = all(TraceEvent::kFailed);
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_EQ(failed[0].block, 5u);
  EXPECT_EQ(failed[0].value, static_cast<uint64_t>(EIO));
  EXPECT_EQ(failed[1].block, 7u);
  EXPECT_EQ(failed[1].value, static_cast<uint64_t>(ENOSPC));
  EXPECT_TRUE(f.cache().sync(f.client(), BlockId(0), 64));
}

}  // namespace
}  // namespace spw::cache
