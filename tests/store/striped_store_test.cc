// What only the striped store does: where bytes lie, what happens when a member fails.
#include "store/striped_store.h"

#include "store_fixture.h"

namespace spw::store {
namespace {

TEST(Stripes, every_byte_has_one_place_and_places_follow_one_another) {
  const Stripes stripes{16, 3};
  uint64_t next[3] = {};
  for (uint64_t at = 0; at < 16 * 3 * 4; ++at) {
    uint64_t member = stripes.member_of(at);
    EXPECT_EQ(member, at / 16 % 3);
    EXPECT_EQ(stripes.offset_in_member(member, at), next[member]++);
    for (uint64_t other = 0; other < 3; ++other)
      EXPECT_EQ(stripes.offset_in_member(other, at + 1), next[other]) << "a range ends where the next begins";
    EXPECT_EQ(stripes.rest_of_chunk(at), 16 - at % 16);
  }
}

class StripedStoreTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kChunk = 16 * kKiB;

  void SetUp() override { directory_ = make_scratch_directory(); }
  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  // Members in memory; `faulty` gets the faults.
  void create(size_t count, size_t faulty = SIZE_MAX) {
    std::vector<std::unique_ptr<Store>> members;
    for (size_t i = 0; i < count; ++i) {
      auto member = MemoryStore::create(kMiB + i * kUnit, i == faulty ? &faults_ : nullptr);
      ASSERT_TRUE(member);
      members.push_back(std::move(*member));
      members_.push_back(members.back().get());
    }
    auto striped = StripedStore::create(std::move(members), kChunk);
    ASSERT_TRUE(striped) << striped.status().message();
    store_ = std::move(*striped);
  }
  std::vector<int> drive(std::vector<Request>& requests) {
    auto queue = store_->open_queue(8);
    EXPECT_TRUE(queue);
    std::vector<Request*> pointers;
    for (Request& request : requests) pointers.push_back(&request);
    return StoreTest::drive(**queue, pointers);
  }

  std::string directory_;
  FaultPlan faults_;
  std::vector<Store*> members_;
  std::unique_ptr<StripedStore> store_;
};

TEST_F(StripedStoreTest, a_size_is_whole_chunks_of_the_smallest_member) {
  create(3);
  EXPECT_EQ(store_->size_bytes(), 3 * kMiB);
}

TEST_F(StripedStoreTest, a_transfer_over_several_chunks_lies_on_all_members) {
  create(3);
  Buffer written(10 * kChunk, 1);
  Request write = transfer_of(Op::kWrite, kChunk / 2, written);
  EXPECT_TRUE(store_->transfer(write));
  // The half of chunk 0, then chunks 1, 2, 3 ...: chunk 4 is the second one of member 1.
  Buffer read(kChunk);
  Request of_member = transfer_of(Op::kRead, kChunk, read);
  EXPECT_TRUE(members_[1]->transfer(of_member));
  EXPECT_EQ(std::memcmp(read.data(), written.data() + 4 * kChunk - kChunk / 2, kChunk), 0);
}

TEST_F(StripedStoreTest, more_pieces_than_a_request_has_segments_are_moved) {
  create(2);
  constexpr uint64_t kBytes = 2 * kMiB;  // one step of 128 chunks, in segments of half a chunk
  Buffer written(kBytes, 1), read(kBytes);
  for (Op op : {Op::kWrite, Op::kRead}) {
    std::vector<Request> requests;
    for (uint64_t half = 0; half < 2; ++half) {
      Request request;
      request.op = op;
      request.offset_bytes = half * kBytes / 2;
      request.segment_count = kSegmentsMax;
      for (size_t i = 0; i < kSegmentsMax; ++i)
        request.segments[i] = {(op == Op::kWrite ? written : read).data() + half * kBytes / 2 + i * kChunk,
                               kChunk};
      requests.push_back(request);
    }
    for (int error : drive(requests)) EXPECT_EQ(error, 0);
  }
  EXPECT_EQ(written, read);
  Buffer again(kBytes);
  Request whole = transfer_of(Op::kRead, 0, again);
  EXPECT_TRUE(store_->transfer(whole));
  EXPECT_EQ(written, again);
}

TEST_F(StripedStoreTest, an_error_names_the_member_and_is_not_retried_twice) {
  create(3, 1);
  ASSERT_TRUE(faults_.add("read:1+:EIO"));
  auto before = telemetry::read_totals();
  Buffer buffer(4 * kChunk);
  Request read = transfer_of(Op::kRead, 0, buffer);
  Status status = store_->transfer(read);
  EXPECT_EQ(status.error(), EIO);
  EXPECT_NE(status.message().find("member 2 of 3 of a striped store, memory:"), std::string::npos)
      << status.message();
  using telemetry::Counter;
  EXPECT_EQ(telemetry::total(telemetry::read_totals(), Counter::store_retries) -
                telemetry::total(before, Counter::store_retries),
            kRetriesMax);
  std::vector<Request> requests;
  for (uint64_t i = 0; i < 3; ++i) {
    requests.push_back(transfer_of(Op::kRead, i * kChunk, buffer));
    requests.back().segments[0] = {buffer.data() + i * kUnit, kUnit};
  }
  EXPECT_EQ(drive(requests), (std::vector<int>{0, EIO, 0})) << "the other members go on";
  faults_.clear();
  Request again = transfer_of(Op::kRead, 0, buffer);
  EXPECT_TRUE(store_->transfer(again));
}

TEST_F(StripedStoreTest, a_member_that_is_full_is_a_full_store_where_it_is_concerned) {
  create(2, 0);
  ASSERT_TRUE(faults_.add("write:1+:ENOSPC"));
  Buffer buffer(kChunk, 1);
  std::vector<Request> requests{transfer_of(Op::kWrite, 0, buffer), transfer_of(Op::kWrite, kChunk, buffer)};
  EXPECT_EQ(drive(requests), (std::vector<int>{ENOSPC, 0}));
}

TEST_F(StripedStoreTest, members_and_chunks_that_cannot_be_are_refused) {
  auto try_create = [](size_t count, uint64_t chunk) {
    std::vector<std::unique_ptr<Store>> members;
    for (size_t i = 0; i < count; ++i) members.push_back(std::move(*MemoryStore::create(kMiB)));
    return StripedStore::create(std::move(members), chunk).status().error();
  };
  EXPECT_EQ(try_create(1, kChunk), EINVAL);
  EXPECT_EQ(try_create(kStripedMembersMax + 1, kChunk), EINVAL);
  EXPECT_EQ(try_create(2, 0), EINVAL);
  EXPECT_EQ(try_create(2, 1000), EINVAL);
  EXPECT_EQ(try_create(2, 2 * kMiB), EINVAL);
  EXPECT_EQ(try_create(2, kMiB), 0);
}

TEST_F(StripedStoreTest, a_name_lists_its_members) {
  std::filesystem::create_directory(directory_ + "/a,b");
  auto opened = open_store("striped:chunk=64K,memory:1M,sparse:" + directory_ + "/a%2Cb?size=1M&segment=64K");
  ASSERT_TRUE(opened) << opened.status().message();
  EXPECT_EQ((*opened)->size_bytes(), 2 * kMiB);
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/a,b/spillway-sparse"));
  auto spilled = open_store("striped:" + directory_ + "," + directory_, {.spill = true});
  ASSERT_TRUE(spilled) << spilled.status().message();
  for (const char* name :
       {"striped:", "striped:memory:1M", "striped:chunk=64K", "striped:chunk=x,memory:1M,memory:1M",
        "striped:memory:1M,what", "striped:memory:1M,,memory:1M", "striped:chunk=1K,memory:1M,memory:1M"})
    EXPECT_EQ(open_store(name).status().error(), EINVAL) << name;
}

// A member on a server that dies takes only what concerns it with it.
TEST_F(StripedStoreTest, a_dead_server_fails_its_part_and_the_other_members_stay_whole) {
  if (!NbdServer::missing().empty()) GTEST_SKIP() << NbdServer::missing();
  NbdServer server(directory_ + "/socket");
  ASSERT_TRUE(server.start({"memory", "1M"}));
  auto opened = open_store("striped:chunk=64K,memory:1M," + server.uri("&timeout=2"));
  ASSERT_TRUE(opened) << opened.status().message();
  auto queue = (*opened)->open_queue(16);
  ASSERT_TRUE(queue);
  Buffer buffer(64 * kKiB, 1);
  auto write_all = [&] {
    std::vector<Request> requests;
    std::vector<Request*> pointers;
    for (uint64_t i = 0; i < 32; ++i) requests.push_back(transfer_of(Op::kWrite, i * 64 * kKiB, buffer));
    for (Request& request : requests) pointers.push_back(&request);
    return StoreTest::drive(**queue, pointers);
  };
  for (int error : write_all()) EXPECT_EQ(error, 0);
  server.kill();
  std::vector<int> errors = write_all();
  for (size_t i = 0; i < errors.size(); ++i) EXPECT_EQ(errors[i], i % 2 ? ENOTCONN : 0) << i;
  Buffer read(64 * kKiB);
  Request whole = transfer_of(Op::kRead, 0, read), lost = transfer_of(Op::kRead, 64 * kKiB, read);
  EXPECT_TRUE((*opened)->transfer(whole));
  EXPECT_EQ(read, buffer);
  Status status = (*opened)->transfer(lost);
  EXPECT_EQ(status.error(), ENOTCONN);
  EXPECT_NE(status.message().find("member 2 of 2 of a striped store, nbd+unix:"), std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find("see that the server runs"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace spw::store
