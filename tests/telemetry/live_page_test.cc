#include "telemetry/live_page.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace spw::telemetry {
namespace {

// Of a child that has this process's page open, too.
void expect_a_page_of_a_child_s_own(Facts facts) {
  int to_child[2], from_child[2];
  ASSERT_EQ(::pipe(to_child) + ::pipe(from_child), 0);
  const pid_t other = ::fork();
  if (other == 0) {
    forget_placed_counters();
    facts.process = static_cast<uint64_t>(::getpid());
    auto page = LivePage::publish(facts, 6);
    count(Counter::evictions, 7);
    char byte = page ? 1 : 0;
    (void)!::write(from_child[1], &byte, 1);
    (void)!::read(to_child[0], &byte, 1);
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(from_child[0], &byte, 1), 1);
  ASSERT_EQ(byte, 1);
  auto of_child = LivePage::open(static_cast<uint64_t>(other));
  ASSERT_TRUE(of_child) << of_child.status().message();
  EXPECT_EQ(total(of_child->totals(), Counter::evictions), 7u) << "not its parent's";
  ASSERT_EQ(::write(to_child[1], &byte, 1), 1);
  ::waitpid(other, nullptr, 0);
}

// A process publishes once, so all that is to be seen is in one test.
TEST(LivePage, another_process_reads_what_this_one_counts) {
  Facts facts;
  facts.program = "a program";
  facts.process = static_cast<uint64_t>(::getpid());
  facts.engine = "mapped";
  facts.store = std::string(1000, 'x');
  facts.block_bytes = 4096;
  facts.frames = 77;
  count(Counter::evictions, 1'000'000);
  const auto self = static_cast<uint64_t>(::getpid());
  EXPECT_EQ(LivePage::open(self).status().error(), ESRCH) << "nothing is published yet";

  auto own = LivePage::publish(facts, 5);
  ASSERT_TRUE(own);
  auto read = LivePage::open(self);
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_STREQ(read->header().program, "a program");
  EXPECT_EQ(std::string(read->header().store).size(), LiveHeader::kTextBytes - 1);
  EXPECT_EQ(read->header().frames, 77u);
  EXPECT_EQ(total(read->totals(), Counter::evictions), 0u) << "what was counted before is not shown";
  const std::vector<uint64_t> all = LivePage::processes();
  EXPECT_NE(std::find(all.begin(), all.end(), self), all.end());

  count(Counter::evictions, 3);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([] { count(Counter::evictions, 10); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(total(read->totals(), Counter::evictions), 43u);
  EXPECT_EQ(total(read_totals(), Counter::evictions), 1'000'043u);

  LivePage::TraceCounts seen_events;
  EXPECT_TRUE(read->trace_since(seen_events).empty());
  note_event(TraceEvent::kEvicted, 4);
  std::thread([] { note_event(TraceEvent::kEvicted, 5); }).join();
  note_event(TraceEvent::kEvicted, 6);
  const auto traced = read->trace_since(seen_events);
  ASSERT_EQ(traced.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(traced[i].entry.block, 4 + i) << "in the order of time";
  EXPECT_TRUE(read->trace_since(seen_events).empty()) << "seen already";

  const pid_t child = ::fork();
  if (child == 0) {
    forget_placed_counters();
    count(Counter::evictions, 500);
    ::_exit(total(read_totals(), Counter::evictions) == 500 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(total(read->totals(), Counter::evictions), 43u) << "a child counts for itself";
  expect_a_page_of_a_child_s_own(facts);
}

TEST(LivePage, of_a_process_that_is_not_there_is_an_error) {
  EXPECT_EQ(LivePage::open(UINT32_MAX).status().error(), ESRCH);
}

}  // namespace
}  // namespace spw::telemetry
