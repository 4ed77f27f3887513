#include "top/numbers.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace spw::tool::top {
namespace {

using telemetry::Counter;

constexpr uint64_t kSecond = 1'000'000'000;

void set(Look& look, Counter counter, uint64_t value) { look.totals[static_cast<size_t>(counter)] = value; }

struct Interval {
  Look before, now;
  PageFacts facts;
  Interval() {
    before.at_ns = 5 * kSecond;
    now.at_ns = 7 * kSecond;
    facts.block_bytes = 4096;
    facts.frames = 100;
  }
  Numbers numbers() const { return numbers_between(before, now, facts); }
};

// A process publishes a page once.
TEST(Facts, of_a_page_are_checked_and_printable) {
  const auto self = static_cast<uint64_t>(::getpid());
  telemetry::Facts facts;
  facts.process = self;
  facts.program = "prog\x1b[2J";
  facts.store = "spill:/mnt/a b (io_uring, O_DIRECT)" + std::string(1000, '\x07');
  facts.block_bytes = 4096;
  auto own = telemetry::LivePage::publish(facts, 5);
  ASSERT_TRUE(own);
  auto page = telemetry::LivePage::open(self);
  ASSERT_TRUE(page);
  auto read = facts_of(self, *page);
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(read->program, "prog\\x1b[2J");
  EXPECT_EQ(read->store.find('\x07'), std::string::npos);
  EXPECT_EQ(read->store_path, "/mnt/a b");
  auto& header = const_cast<telemetry::LiveHeader&>(own->header());
  for (char& letter : header.program) letter = 'x';
  EXPECT_EQ(facts_of(self, *page)->program.size(), telemetry::LiveHeader::kTextBytes) << "without an end";
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{3}, uint64_t{2048}, uint64_t{4} << 20, UINT64_MAX}) {
    header.block_bytes = bytes;
    EXPECT_EQ(facts_of(self, *page).status().error(), EPROTO) << bytes;
  }
}

TEST(Numbers, are_rates_of_the_time_between_two_looks) {
  Interval interval;
  set(interval.before, Counter::shared_misses, 100);
  set(interval.now, Counter::shared_misses, 200);
  set(interval.now, Counter::shared_hits, 300);
  set(interval.now, Counter::fill_wait_ns, 3 * kSecond);
  const Numbers numbers = interval.numbers();
  EXPECT_DOUBLE_EQ(numbers.rate(Counter::shared_misses), 50);
  EXPECT_DOUBLE_EQ(*numbers.hit_ratio, 0.75);
  EXPECT_DOUBLE_EQ(numbers.uses_s, 200);
  EXPECT_DOUBLE_EQ(numbers.waiting, 1.5) << "threads, on average";
  EXPECT_FALSE(numbers.device);
}

TEST(Numbers, of_an_interval_without_uses_have_no_hit_ratio) { EXPECT_FALSE(Interval().numbers().hit_ratio); }

TEST(Numbers, say_what_is_resident_and_dirty) {
  Interval interval;
  set(interval.now, Counter::fills, 60);
  set(interval.now, Counter::zero_fills, 40);
  set(interval.now, Counter::evictions, 50);
  set(interval.now, Counter::bytes_dirtied, 30 * 4096);
  set(interval.now, Counter::writebacks, 10);
  EXPECT_EQ(interval.numbers().resident_bytes, 50u * 4096);
  EXPECT_EQ(interval.numbers().dirty_bytes, 20u * 4096);
  EXPECT_DOUBLE_EQ(interval.numbers().frames_share, 0.5);
}

TEST(Numbers, say_what_is_compressed) {
  Interval interval;
  EXPECT_EQ(interval.numbers().compressed_bytes, 0u);
  EXPECT_EQ(interval.numbers().compressed_ratio, 0);
  set(interval.now, Counter::compressed_memory_taken, 3 << 20);
  set(interval.now, Counter::compressed_memory_given_back, 1 << 20);
  set(interval.now, Counter::compressed_pages, 100);
  set(interval.now, Counter::compressed_bytes, 100 * 1024);
  EXPECT_EQ(interval.numbers().compressed_bytes, uint64_t{2} << 20);
  EXPECT_DOUBLE_EQ(interval.numbers().compressed_ratio, 4);
}

TEST(Numbers, of_counts_that_go_down_are_0) {
  Interval interval;
  set(interval.before, Counter::shared_misses, UINT64_MAX);
  set(interval.now, Counter::evictions, UINT64_MAX);
  interval.now.at_ns = 1;
  interval.facts.frames = 0;
  const Numbers numbers = interval.numbers();
  EXPECT_EQ(numbers.rate(Counter::shared_misses), 0);
  EXPECT_EQ(numbers.resident_bytes, 0u);
  EXPECT_GT(numbers.seconds, 0);
}

TEST(Numbers, have_the_device_s_own) {
  Interval interval;
  interval.before.device = DeviceCounts{10, 1000, 0, 500, 100};
  interval.now.device = DeviceCounts{30, 5000, 2000, 1500, 4100};
  const auto device = interval.numbers().device;
  ASSERT_TRUE(device);
  EXPECT_DOUBLE_EQ(device->busy, 0.5);
  EXPECT_DOUBLE_EQ(device->in_flight, 2);
  EXPECT_DOUBLE_EQ(device->read_bytes_s, 2000);
  EXPECT_DOUBLE_EQ(device->write_bytes_s, 1000);
  EXPECT_DOUBLE_EQ(device->requests_s, 10);
}

TEST(History, keeps_the_last_and_their_span) {
  History history;
  EXPECT_EQ(history.span_s(10), 0);
  for (size_t i = 0; i < History::kSamplesMax + 50; ++i) {
    Numbers numbers;
    numbers.at_s = static_cast<double>(i);
    numbers.seconds = 1;
    numbers.waiting = static_cast<double>(i);
    history.add(numbers);
  }
  EXPECT_EQ(history.size(), History::kSamplesMax);
  EXPECT_DOUBLE_EQ(history.span_s(10), 10);
  EXPECT_DOUBLE_EQ(history.span_s(1'000'000), static_cast<double>(History::kSamplesMax));
  const auto values = history.values([](const Numbers& each) { return each.waiting; });
  EXPECT_EQ(values.front(), 50);
  EXPECT_EQ(values.back(), history.newest().waiting);
}

}  // namespace
}  // namespace spw::tool::top
