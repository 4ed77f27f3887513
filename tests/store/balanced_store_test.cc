// What only the balanced store does: which member a chunk gets, and what becomes of it.
#include <sys/wait.h>

#include <thread>

#include "balanced_fixture.h"

namespace spw::store {
namespace {

using telemetry::Counter;

class BalancedStoreTest : public BalancedFixture {
 protected:
  void race(uint64_t pause_ns = 0);
};

// ---- Shares ----

TEST_F(BalancedStoreTest, equal_members_get_equal_shares) {
  create({2000, 2000});
  for (FaultPlan& each : {std::ref(faults_[0]), std::ref(faults_[1])})
    ASSERT_TRUE(each.add("write:1+:delay:4000"));
  const double share = first_ones_share(0, 1500);
  EXPECT_GT(share, 0.4);
  EXPECT_LT(share, 0.6);
}

TEST_F(BalancedStoreTest,
       a_member_that_is_four_times_slower_gets_a_quarter_of_the_others_share_and_catches_up) {
  create({4000, 4000});
  ASSERT_TRUE(faults_[0].add("write:1+:delay:8000"));
  ASSERT_TRUE(faults_[1].add("write:1+:delay:2000"));
  first_ones_share(0, 300);
  const double slow = first_ones_share(300, 1300);
  EXPECT_LT(slow, 0.28) << "one in five is its share";
  EXPECT_GT(slow, 0.05) << "it is slower, not useless";
  EXPECT_GT(store_->slowness(0), 2 * store_->slowness(1));
  faults_[0].clear();
  ASSERT_TRUE(faults_[0].add("write:1+:delay:2000"));
  first_ones_share(1300, 2300);
  const double mended = first_ones_share(2300, 3300);
  EXPECT_GT(mended, 0.35);
  EXPECT_LT(mended, 0.65);
}

TEST_F(BalancedStoreTest, a_slow_file_gets_a_small_share) {
  create_spill(2, 1000);
  ASSERT_TRUE(faults_[0].add("write:1+:delay:48000"));
  ASSERT_TRUE(faults_[1].add("write:1+:delay:4000"));
  first_ones_share(0, 200);
  const double slow = first_ones_share(200, 700);
  EXPECT_LT(slow, 0.35);
  EXPECT_GT(slow, 0.01);
}

TEST_F(BalancedStoreTest, reads_that_take_long_count_too) {
  create({100, 100});
  ASSERT_TRUE(faults_[0].add("write:1+:delay:2000,read:1+:delay:20000"));
  ASSERT_TRUE(faults_[1].add("write:1+:delay:2000,read:1+:delay:2000"));
  for (uint64_t chunk = 0; chunk < 20; ++chunk) ASSERT_EQ(write(chunk), 0);
  for (int round = 0; round < 3; ++round)
    for (uint64_t chunk = 0; chunk < 20; ++chunk) ASSERT_TRUE(is_as_written(chunk));
  EXPECT_GT(store_->slowness(0), 1.5 * store_->slowness(1));
}

// ---- Room ----

TEST_F(BalancedStoreTest, the_sizes_add_up) {
  create({10, 30, 3});
  EXPECT_EQ(store_->size_bytes(), 43 * kChunk);
  for (uint64_t chunk = 0; chunk < 43; ++chunk) ASSERT_EQ(write(chunk), 0) << chunk;
  for (uint64_t chunk = 0; chunk < 43; ++chunk) ASSERT_TRUE(is_as_written(chunk)) << chunk;
  EXPECT_EQ(store_->chunks_of(0), 10u);
  EXPECT_EQ(store_->chunks_of(1), 30u);
  EXPECT_EQ(store_->chunks_of(2), 3u);
}

TEST_F(BalancedStoreTest, a_full_member_gets_no_more_and_no_write_fails) {
  create({100, 100, 100});
  ASSERT_TRUE(faults_[1].add("write:4+:ENOSPC"));
  for (uint64_t chunk = 0; chunk < 100; ++chunk) ASSERT_EQ(write(chunk), 0) << chunk;
  EXPECT_LE(store_->chunks_of(1), 3u);
  for (uint64_t chunk = 0; chunk < 100; ++chunk) ASSERT_TRUE(is_as_written(chunk)) << chunk;
  // Through a queue, of several chunks each.
  Buffer written(4 * kChunk, 7), read(4 * kChunk);
  auto queue = store_->open_queue(kDepth);
  ASSERT_TRUE(queue);
  platform::sleep_ns(Shares::kFullPauseNs);  // so that it is tried again
  for (uint64_t at = 100; at < 140; at += 4)
    for (Request request :
         {transfer_of(Op::kWrite, at * kChunk, written), transfer_of(Op::kRead, at * kChunk, read)}) {
      EXPECT_EQ(StoreTest::drive(**queue, {&request})[0], 0);
      if (request.op == Op::kRead) {
        EXPECT_EQ(written, read);
      }
    }
}

TEST_F(BalancedStoreTest, when_all_are_full_writes_fail_until_there_is_room) {
  create({4, 4});
  for (FaultPlan& each : {std::ref(faults_[0]), std::ref(faults_[1])})
    ASSERT_TRUE(each.add("write:3+:ENOSPC"));
  uint64_t written = 0;
  while (write(written) == 0) ++written;
  EXPECT_EQ(written, 4u);
  EXPECT_EQ(write(written), ENOSPC);
  EXPECT_EQ(assigned(), 4u) << "a chunk that nothing could be written to is not assigned";
  for (uint64_t chunk = 0; chunk < written; ++chunk) EXPECT_TRUE(is_as_written(chunk));
  faults_[1].clear();
  platform::sleep_ns(2 * Shares::kNoRoomPauseNs);
  EXPECT_EQ(write(written), 0);
  EXPECT_TRUE(is_as_written(written));
}

// ---- Chunks come and go ----

TEST_F(BalancedStoreTest, what_was_never_written_is_zeros_without_a_request) {
  create({10, 10});
  const auto before = telemetry::read_totals();
  EXPECT_TRUE(is_zero(3));
  EXPECT_EQ(perform(discard_of(0, 20 * kChunk)), 0);
  EXPECT_EQ(telemetry::total(telemetry::read_totals(), Counter::store_reads) -
                telemetry::total(before, Counter::store_reads),
            0u);
  EXPECT_EQ(assigned(), 0u);
}

TEST_F(BalancedStoreTest, a_chunk_that_is_discarded_whole_gives_its_slot_back) {
  create({4, 4});
  for (int round = 0; round < 5; ++round) {
    for (uint64_t chunk = 0; chunk < 8; ++chunk) ASSERT_EQ(write(chunk), 0);
    ASSERT_EQ(perform(discard_of(kUnit, kChunk - kUnit)), 0);
    EXPECT_EQ(assigned(), 8u) << "its first block is there still";
    Buffer read(kChunk);
    ASSERT_EQ(perform(transfer_of(Op::kRead, 0, read)), 0);
    EXPECT_EQ(std::memcmp(read.data(), Buffer(kChunk, 1).data(), kUnit), 0);
    EXPECT_TRUE(read.is_zero(kUnit));
    ASSERT_EQ(perform(discard_of(2 * kChunk, 6 * kChunk)), 0);
    EXPECT_EQ(assigned(), 2u);
    EXPECT_TRUE(is_as_written(1));
    for (uint64_t chunk = 2; chunk < 8; ++chunk) EXPECT_TRUE(is_zero(chunk));
    // What one chunk has left behind is not another one's.
    ASSERT_EQ(perform(transfer_of(Op::kWrite, 5 * kChunk, Buffer(kUnit, 9))), 0);
    ASSERT_EQ(perform(transfer_of(Op::kRead, 5 * kChunk, read)), 0);
    EXPECT_TRUE(read.is_zero(kUnit));
  }
}

TEST_F(BalancedStoreTest, a_slot_that_could_not_be_emptied_is_before_it_is_used_again) {
  create({1, 1});
  for (uint64_t chunk = 0; chunk < 2; ++chunk) ASSERT_EQ(write(chunk), 0);
  for (FaultPlan& each : {std::ref(faults_[0]), std::ref(faults_[1])})
    ASSERT_TRUE(each.add("discard:1:EROFS"));
  EXPECT_EQ(perform(discard_of(0, 2 * kChunk)), EROFS);
  EXPECT_TRUE(is_zero(0) && is_zero(1));
  ASSERT_EQ(perform(transfer_of(Op::kWrite, 0, Buffer(kUnit, 5))), 0);
  Buffer read(kChunk);
  ASSERT_EQ(perform(transfer_of(Op::kRead, 0, read)), 0);
  EXPECT_TRUE(read.is_zero(kUnit));
}

TEST_F(BalancedStoreTest, an_error_names_the_member) {
  create({10, 10});
  for (uint64_t chunk = 0; chunk < 10; ++chunk) ASSERT_EQ(write(chunk), 0);
  ASSERT_TRUE(faults_[1].add("read:1+:EIO"));
  unsigned failed = 0;
  for (uint64_t chunk = 0; chunk < 10; ++chunk) {
    Buffer read(kChunk);
    Request request = transfer_of(Op::kRead, chunk * kChunk, read);
    const Status status = store_->transfer(request);
    if (status) continue;
    ++failed;
    EXPECT_EQ(status.error(), EIO);
    EXPECT_NE(status.message().find("member 2 of 2 of a striped store, memory:"), std::string::npos)
        << status.message();
  }
  EXPECT_EQ(failed, store_->chunks_of(1));
  EXPECT_GT(failed, 0u);
}

TEST_F(BalancedStoreTest, a_description_says_what_each_member_got) {
  create({10, 30});
  EXPECT_EQ(store_->describe(),
            "striped over 2 in chunks of 16.0 KiB, balanced: memory:160.0 KiB, memory:480.0 KiB");
  for (uint64_t chunk = 0; chunk < 40; ++chunk) ASSERT_EQ(write(chunk), 0);
  EXPECT_EQ(store_->describe(),
            "striped over 2 in chunks of 16.0 KiB, balanced: memory:160.0 KiB 25 %, memory:480.0 KiB 75 %");
}

// ---- Threads and children ----

// Writers have blocks of their own in all chunks, which they read, discard and write anew, while others discard whole
// chunks, and a member is full now and then. A block has what its writer wrote last, or nothing: never what was another
// chunk's.
void BalancedStoreTest::race(uint64_t pause_ns) {
  constexpr uint64_t kChunks = 16, kWriters = kChunk / kUnit;
  for (int nth = 20; nth < 2000; nth += 20)
    ASSERT_TRUE(faults_[nth % 3].add("write:" + std::to_string(nth) + ":ENOSPC"));
  Atomic<uint64_t> wrong(0), failed(0);
  const auto works = [&](uint64_t writer) {
    auto queue = store_->open_queue(2);
    const auto perform_as = [&](Request request) {
      if (writer % 2 == 0) return store_->transfer(request).error();
      return StoreTest::drive(**queue, {&request})[0];
    };
    Rng rng(writer + 1);
    uint64_t stamps[kChunks] = {};
    Buffer buffer(kUnit);
    auto* const words = reinterpret_cast<uint64_t*>(buffer.data());
    for (uint64_t round = 1; round <= 1500; ++round) {
      if (pause_ns > 0) platform::sleep_ns(rng.below(2 * pause_ns));
      const uint64_t chunk = rng.below(kChunks), at = chunk * kChunk + writer * kUnit;
      const uint64_t stamp = round << 16 | chunk << 8 | writer;
      if (rng.below(2) == 0) {
        std::fill_n(words, kUnit / 8, stamp);
        // A chunk that had something is on its member still, which had no room for the rest: nothing was written.
        const int error = perform_as(transfer_of(Op::kWrite, at, buffer));
        failed.fetch_add_relaxed(error != 0 && error != ENOSPC);
        if (error == 0) stamps[chunk] = stamp;
      } else if (rng.below(8) == 0) {
        failed.fetch_add_relaxed(perform_as(discard_of(at, kUnit)) != 0);
        stamps[chunk] = 0;
      }
      failed.fetch_add_relaxed(perform_as(transfer_of(Op::kRead, at, buffer)) != 0);
      for (uint64_t i = 0; i < kUnit / 8; ++i)
        if (words[i] != 0 && words[i] != stamps[chunk]) {
          wrong.fetch_add_relaxed(1);
          break;
        }
    }
  };
  Atomic<bool> over(false);
  std::vector<std::thread> writers, others;
  for (uint64_t writer = 0; writer < kWriters; ++writer) writers.emplace_back(works, writer);
  others.emplace_back([&] {
    Rng rng(99);
    while (!over.load_acquire()) {
      if (pause_ns > 0) platform::sleep_ns(32 * pause_ns);
      const uint64_t first = rng.below(kChunks - 2);
      failed.fetch_add_relaxed(perform(discard_of(first * kChunk, (1 + rng.below(3)) * kChunk)) != 0);
      const Status reserved = store_->reserve(rng.below(kChunks) * kChunk, kUnit);
      failed.fetch_add_relaxed(!reserved && reserved.error() != ENOSPC);
    }
  });
  for (std::thread& writer : writers) writer.join();
  over.store_release(true);
  for (std::thread& other : others) other.join();
  EXPECT_EQ(wrong.load_relaxed(), 0u);
  EXPECT_EQ(failed.load_relaxed(), 0u);
  EXPECT_EQ(perform(discard_of(0, kChunks * kChunk)), 0);
  EXPECT_EQ(assigned(), 0u) << "a slot is lost";
  for (FaultPlan& each : faults_) each.clear();
  platform::sleep_ns(Shares::kFullPauseNs);
  for (uint64_t chunk = 0; chunk < 24; ++chunk) EXPECT_EQ(write(chunk), 0);
  for (uint64_t chunk = 0; chunk < 24; ++chunk) EXPECT_TRUE(is_as_written(chunk));
}

TEST_F(BalancedStoreTest, what_comes_and_goes_at_the_same_time_does_not_meet) {
  create({8, 8, 8});
  race();
}

TEST_F(BalancedStoreTest, nor_where_chunks_move_up_and_down) {
  // Of files: a copy beside a write, which is then given up, is the kernel's there.
  create_spill(3, 8, {0, 1, 2});
  race(2'000'000);
  EXPECT_GT(store_->moved(), 0u);
}

TEST_F(BalancedStoreTest, nor_does_it_where_no_thread_is_between) {
  create_spill(3, 8);
  race();
}

#if defined(__SANITIZE_THREAD__)
constexpr bool kIsTsan = true;
#elif defined(__has_feature)
constexpr bool kIsTsan = __has_feature(thread_sanitizer);
#else
constexpr bool kIsTsan = false;
#endif

// As the layers of what was spilled use it: the parent leaves alone what the child reads, but for what was under way.
TEST_F(BalancedStoreTest, a_forked_child_goes_on_with_what_it_has_of_it) {
  if (kIsTsan) GTEST_SKIP() << "the thread sanitizer has no threads in a forked child";
  create_spill(3);
  constexpr uint64_t kBefore = 40, kAll = 3 * kMiB / kChunk;
  ASSERT_GE(first_ones_share(0, kBefore), 0) << "its threads run";
  for (uint64_t chunk = 0; chunk < kBefore; ++chunk) ASSERT_EQ(write(chunk), 0);
  int told[2];
  ASSERT_EQ(::pipe(told), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char go = 0;
    engines_in_child();  // as the runtime does
    store_->in_child();
    bool good = ::read(told[0], &go, 1) == 1;
    auto queue = store_->open_queue(kDepth);
    for (uint64_t chunk = 0; chunk < kBefore; ++chunk) good &= is_as_written(chunk);
    // The parent has written there meanwhile, of which this process knows nothing.
    Buffer read(kChunk);
    for (uint64_t chunk = kBefore; chunk < kAll; ++chunk) {
      const Buffer written(kUnit, chunk);
      Request one = transfer_of(Op::kWrite, chunk * kChunk, written);
      Request back = transfer_of(Op::kRead, chunk * kChunk, read);
      good &= StoreTest::drive(**queue, {&one})[0] == 0 && StoreTest::drive(**queue, {&back})[0] == 0;
      good &= read.is_zero(kUnit) && std::memcmp(read.data(), written.data(), kUnit) == 0;
    }
    ::_exit(good ? 0 : 1);
  }
  for (uint64_t chunk = kBefore; chunk < kAll; ++chunk) EXPECT_EQ(write(chunk), 0);
  ASSERT_EQ(::write(told[1], "g", 1), 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::close(told[0]);
  ::close(told[1]);
}

// ---- Names ----

TEST_F(BalancedStoreTest, a_list_of_names_is_a_place_to_spill_to) {
  std::filesystem::create_directory(directory_ + "/a,b");
  std::filesystem::create_directory(directory_ + "/c");
  for (const std::string& name :
       {directory_ + "/a%2Cb," + directory_ + "/c", "memory:1M," + directory_ + "/c",
        "striped:" + directory_ + "," + directory_ + "/a%2Cb", "striped:chunk=64K,memory:1M," + directory_}) {
    auto opened = open_store(name, {.spill = true});
    ASSERT_TRUE(opened) << opened.status().message();
    EXPECT_TRUE((*opened)->describe().starts_with("striped over 2 in chunks of ")) << (*opened)->describe();
    EXPECT_NE((*opened)->describe().find("balanced"), std::string::npos) << (*opened)->describe();
    EXPECT_TRUE(is_another_each_time(name));
  }
  for (const std::string& name : {directory_ + "/a,b", "spill:" + directory_ + "/a,b"}) {
    auto one = open_store(name, {.spill = true});
    ASSERT_TRUE(one) << one.status().message();
    EXPECT_TRUE((*one)->describe().starts_with("spill:" + directory_ + "/a,b (")) << (*one)->describe();
    EXPECT_TRUE(is_another_each_time(name));
  }
  EXPECT_FALSE(is_another_each_time(directory_ + ",nbd://host/x"));
  EXPECT_FALSE(is_another_each_time("striped:" + directory_ + ",sparse:" + directory_));
  EXPECT_EQ(open_store("memory:1M,memory:1M").status().error(), EINVAL) << "it would not stay as it is";
}

TEST_F(BalancedStoreTest, lists_that_cannot_be_are_refused) {
  std::string many = directory_;
  for (size_t i = 0; i < kStripedMembersMax; ++i) many += "," + directory_;
  for (const std::string& name : {directory_ + ",," + directory_, directory_ + ",/no/such/place", many,
                                  std::string("memory:1M,memory:4K")})
    EXPECT_EQ(open_store(name, {.spill = true}).status().error(), EINVAL) << name;
  const Status small = open_store("memory:1M,memory:4K", {.spill = true}).status();
  EXPECT_NE(small.message().find("memory:4.0 KiB has 4.0 KiB"), std::string::npos) << small.message();
}

}  // namespace
}  // namespace spw::store
