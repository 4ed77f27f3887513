#include "telemetry/live_page.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
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

// A page that its maker can make shorter would end who looks at it with SIGBUS.
TEST(LivePage, one_that_can_shrink_or_is_none_is_refused) {
  const auto refused = [](Result<platform::File> file) {
    EXPECT_TRUE(file) << file.status().message();
    return LivePage::open_file(std::move(*file), "a program").status().error() == EPROTO;
  };
  EXPECT_TRUE(refused(platform::create_memory_file(kLivePageName, LivePage::kBytes))) << "not sealed";
  EXPECT_TRUE(refused(platform::create_sealed_memory_file(kLivePageName, LivePage::kBytes))) << "zeros";
  EXPECT_TRUE(refused(platform::create_sealed_memory_file(kLivePageName, 4096))) << "too short";
  EXPECT_TRUE(refused(platform::open_file("/proc/self/exe", O_RDONLY))) << "no memory file";
}

// What stands in a page is another process's: counts that go down and a number of threads that no page has room for.
TEST(LivePage, whatever_stands_in_it_it_can_be_read) {
  auto made = platform::create_sealed_memory_file(kLivePageName, LivePage::kBytes);
  ASSERT_TRUE(made);
  auto memory = platform::map_file(*made, 0, LivePage::kBytes, platform::Protection::kReadWrite);
  ASSERT_TRUE(memory);
  auto* header = new (memory->data()) LiveHeader;
  header->magic = LiveHeader::kMagic;
  header->counter_count = kCounterCount;
  header->schema = kReportSchema;
  header->used.store_relaxed(UINT32_MAX);
  std::memset(header->program, 'x', sizeof header->program);
  auto* block = reinterpret_cast<CounterBlock*>(memory->data() + LivePage::kBlocksOffset);
  std::memset(static_cast<void*>(block), 0xff, sizeof *block);
  auto page = LivePage::open_file(std::move(*made), "a program");
  ASSERT_TRUE(page) << page.status().message();
  LivePage::MissCounts misses;
  LivePage::TraceCounts traced;
  EXPECT_LE(page->missed_since(misses).size(), size_t{CounterBlock::kRecentMisses});
  EXPECT_EQ(misses.size(), size_t{LivePage::kThreadsMax});
  (void)page->trace_since(traced);
  EXPECT_EQ(traced.size(), size_t{LivePage::kThreadsMax});
  std::memset(static_cast<void*>(block), 0, sizeof *block);
  header->used.store_relaxed(1);
  EXPECT_LE(page->placed_since(misses).size(), size_t{CounterBlock::kRecentPlaces});
  EXPECT_LE(page->missed_since(misses).size(), size_t{CounterBlock::kRecentMisses});
  EXPECT_EQ(misses.size(), 1u);
  EXPECT_TRUE(page->areas().empty());
}

TEST(LivePage, of_a_process_that_is_not_there_is_an_error) {
  EXPECT_EQ(LivePage::open(UINT32_MAX).status().error(), ESRCH);
}

}  // namespace
}  // namespace spw::telemetry
