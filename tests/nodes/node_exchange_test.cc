// Requests between nodes, which are simulated: as many groups of workers as a test wants.
#include "nodes/node_exchange.h"

#include <numeric>
#include <thread>

#include "../cache/cache_fixture.h"
#include "platform/numa.h"

namespace spw::nodes {
namespace {

using cache::Access;
using cache::CacheFixture;
using cache::Kind;
using cache::Options;
using cache::small_cache;
using platform::numbers_in;

Options four_partitions(Kind kind) {
  Options options = small_cache(512, kind);
  options.partitions = 4;
  return options;
}

class Nodes : public testing::TestWithParam<Kind> {
 protected:
  Nodes() : f_(four_partitions(GetParam())) {
    auto made = NodeExchange::start(f_.cache(), 12, {.nodes = 2, .workers_a_node = 2, .is_simulated = true});
    SPW_CHECK(made.is_ok());
    exchange_ = std::move(*made);
  }
  // All of the requests, with as many in flight as there may be.
  static void run(NodeExchange::Port& port, std::span<const BlockRequest> requests) {
    std::vector<BlockReply> replies(64);
    size_t taken = 0, done = 0;
    while (done < requests.size()) {
      taken += port.submit(requests.subspan(taken));
      const size_t got = port.receive(replies, true);
      ASSERT_GT(got, 0u);
      for (size_t i = 0; i < got; ++i) EXPECT_EQ(replies[i].error, 0);
      done += got;
    }
    EXPECT_EQ(port.in_flight(), 0u);
    EXPECT_EQ(port.receive(replies, true), 0u) << "nothing is in flight: nothing to wait for";
  }

  CacheFixture f_;
  std::unique_ptr<NodeExchange> exchange_;
};

TEST_P(Nodes, reads_and_writes_reach_their_blocks_wherever_they_are) {
  NodeExchange::Port& port = **exchange_->open_port(1);
  constexpr uint64_t kCount = 2000;  // four times the frames
  std::vector<uint64_t> values(kCount), read(kCount);
  std::iota(values.begin(), values.end(), 1000);
  std::vector<BlockRequest> writes, reads;
  for (uint64_t b = 0; b < kCount; ++b) {
    const auto offset = static_cast<uint32_t>(8 * (b % 500));
    writes.push_back(
        {BlockId(b), offset, 8, Access::kWrite, reinterpret_cast<std::byte*>(&values[b]), nullptr});
    reads.push_back({BlockId(b), offset, 8, Access::kRead, reinterpret_cast<std::byte*>(&read[b]), nullptr});
  }
  run(port, writes);
  run(port, reads);
  EXPECT_EQ(read, values);
  exchange_->close_port(&port);
}

TEST_P(Nodes, many_requests_travel_in_few_messages) {
  NodeExchange::Port& port = **exchange_->open_port(0);
  std::vector<BlockRequest> requests;
  uint64_t remote = 0;
  std::vector<uint64_t> read(512);
  for (uint64_t b = 0; b < 512; ++b) {
    remote += exchange_->node_of(BlockId(b)) != 0;
    requests.push_back({BlockId(b), 0, 8, Access::kRead, reinterpret_cast<std::byte*>(&read[b]), nullptr});
  }
  ASSERT_EQ(remote, 256u) << "half of the groups";
  run(port, requests);
  EXPECT_LE(port.messages(), remote / NodeExchange::kRequestsAMessage + 2);
  exchange_->close_port(&port);
}

TEST_P(Nodes, threads_of_all_nodes_at_once) {
  constexpr uint64_t kOwn = 300;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      NodeExchange::Port& port = **exchange_->open_port(t % 2);
      Rng rng(t + 1);
      std::vector<uint64_t> values(kOwn), read(kOwn);
      for (int round = 0; round < 30; ++round) {
        std::vector<BlockRequest> writes, reads;
        for (uint64_t b = 0; b < kOwn; ++b) {
          values[b] = rng.next();
          const BlockId block(t * 1000 + b);
          writes.push_back({block, 0, 8, Access::kWrite, reinterpret_cast<std::byte*>(&values[b]), nullptr});
          reads.push_back({block, 0, 8, Access::kRead, reinterpret_cast<std::byte*>(&read[b]), nullptr});
        }
        run(port, writes);
        run(port, reads);
        ASSERT_EQ(read, values);
      }
      exchange_->close_port(&port);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Nodes, a_failed_read_is_answered_with_its_error) {
  f_.store_directly(5, 1);
  f_.store_directly(64, 1);  // another group, so another node
  f_.mend_with("read:1+:EIO");
  NodeExchange::Port& port = **exchange_->open_port(0);
  uint64_t value = 0;
  int marks[2];
  BlockRequest requests[2];
  for (int i = 0; i < 2; ++i)
    requests[i] = {
        BlockId(i == 0 ? 5 : 64), 0, 8, Access::kRead, reinterpret_cast<std::byte*>(&value), &marks[i]};
  ASSERT_EQ(port.submit(requests), 2u);
  std::vector<BlockReply> replies(2);
  size_t got = 0;
  while (got < 2) got += port.receive(std::span(replies).subspan(got), true);
  for (const BlockReply& reply : replies) EXPECT_EQ(reply.error, EIO);
  EXPECT_NE(replies[0].user, replies[1].user);
  exchange_->close_port(&port);
  f_.plan().clear();
}

TEST(Numa, lists_of_the_kernel) {
  EXPECT_EQ(numbers_in("0-3,8,10-11"), (std::vector<unsigned>{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(numbers_in("0"), std::vector<unsigned>{0});
  EXPECT_TRUE(numbers_in("").empty());
  EXPECT_TRUE(numbers_in("none").empty());
  EXPECT_TRUE(numbers_in("3-1").empty());
}

TEST(Numa, a_thread_can_stay_where_it_is) {
  const std::vector<unsigned> nodes = platform::nodes_with_processors();
  ASSERT_FALSE(nodes.empty());
  const unsigned node = platform::current_node();
  EXPECT_NE(std::find(nodes.begin(), nodes.end(), node), nodes.end());
  std::thread bound([&] {
    const Status status = platform::run_on_node(node);
    if (!status) GTEST_SKIP() << status.message();
    EXPECT_EQ(platform::current_node(), node);
  });
  bound.join();
  EXPECT_FALSE(platform::run_on_node(5000).is_ok());
}

INSTANTIATE_TEST_SUITE_P(All, Nodes, testing::Values(cache::kCombining, cache::kPageSets), cache::kind_name);

}  // namespace
}  // namespace spw::nodes
