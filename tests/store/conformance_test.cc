// What every store keeps to, however it is reached. A new store adds its Kind to store_fixture.h.
#include <sys/stat.h>

#include <thread>

#include "platform/time.h"
#include "store_fixture.h"

namespace spw::store {
namespace {

using telemetry::Counter;

class Conformance : public StoreTest {};

TEST_P(Conformance, what_is_written_is_read) {
  Buffer written(64 * kKiB, 1), read(64 * kKiB);
  EXPECT_EQ(perform(transfer_of(Op::kWrite, 128 * kKiB, written)), 0);
  EXPECT_EQ(perform(transfer_of(Op::kRead, 128 * kKiB, read)), 0);
  EXPECT_EQ(written, read);
  EXPECT_EQ(counted(Counter::store_writes), 1u);
  EXPECT_EQ(counted(Counter::store_write_bytes), 64 * kKiB);
  EXPECT_EQ(counted(Counter::store_reads), 1u);
  EXPECT_EQ(counted(Counter::store_read_bytes), 64 * kKiB);
}

TEST_P(Conformance, segments_are_moved_in_their_order) {
  Buffer written(kSegmentsMax * kUnit, 2), read(kSegmentsMax * kUnit);
  Request gather = transfer_of(Op::kWrite, kUnit, written);
  gather.segment_count = kSegmentsMax;
  for (size_t i = 0; i < kSegmentsMax; ++i)
    gather.segments[i] = {written.data() + (kSegmentsMax - 1 - i) * kUnit, kUnit};
  EXPECT_EQ(perform(gather), 0);
  EXPECT_EQ(perform(transfer_of(Op::kRead, kUnit, read)), 0);
  for (size_t i = 0; i < kSegmentsMax; ++i)
    EXPECT_EQ(std::memcmp(read.data() + i * kUnit, written.data() + (kSegmentsMax - 1 - i) * kUnit, kUnit), 0)
        << i;
}

TEST_P(Conformance, what_was_never_written_reads_as_zeros) {
  Buffer read(256 * kKiB);
  EXPECT_EQ(perform(transfer_of(Op::kRead, kMiB, read)), 0);
  EXPECT_TRUE(read.is_zero());
}

TEST_P(Conformance, a_discarded_range_reads_as_zeros_and_its_neighbours_stay) {
  Buffer written(64 * kKiB, 3), read(64 * kKiB);
  EXPECT_EQ(perform(transfer_of(Op::kWrite, 0, written)), 0);
  EXPECT_EQ(perform(discard_of(16 * kKiB, 32 * kKiB)), 0);
  EXPECT_EQ(perform(transfer_of(Op::kRead, 0, read)), 0);
  std::memset(written.data() + 16 * kKiB, 0, 32 * kKiB);
  EXPECT_EQ(written, read);
}

TEST_P(Conformance, a_sync_succeeds) { EXPECT_EQ(perform(sync_of()), 0); }

TEST_P(Conformance, an_unaligned_request_is_refused) {
  Buffer buffer(8 * kUnit, 4);
  Request offset = transfer_of(Op::kRead, 512, buffer);
  EXPECT_EQ(perform(offset), EINVAL);
  Request length = transfer_of(Op::kWrite, 0, buffer);
  length.segments[0].iov_len = 100;
  EXPECT_EQ(perform(length), EINVAL);
  Request address = transfer_of(Op::kWrite, 0, buffer);
  address.segments[0] = {buffer.data() + 8, kUnit};
  EXPECT_EQ(perform(address), EINVAL);
  EXPECT_EQ(perform(discard_of(kUnit, 1000)), EINVAL);
  Request crowd = transfer_of(Op::kRead, 0, buffer);
  crowd.segment_count = kSegmentsMax + 1;
  EXPECT_EQ(perform(crowd), EINVAL);
}

TEST_P(Conformance, a_request_behind_the_end_is_refused) {
  Buffer buffer(kUnit, 5);
  uint64_t end = store_->size_bytes();
  EXPECT_EQ(perform(transfer_of(Op::kRead, end, buffer)), EINVAL);
  EXPECT_EQ(perform(transfer_of(Op::kWrite, end + kMiB, buffer)), EINVAL);
  EXPECT_EQ(perform(discard_of(end, kUnit)), EINVAL);
  Buffer too_long(kMaxBlockBytes + kUnit, 5);
  EXPECT_EQ(perform(transfer_of(Op::kRead, end - kUnit, too_long)), EINVAL);
}

TEST_P(Conformance, a_block_that_sticks_out_of_the_end_reads_zeros_there) {
  Buffer written(64 * kKiB, 6), read(64 * kKiB);
  uint64_t last = store_->size_bytes() - 16 * kKiB;
  EXPECT_EQ(perform(transfer_of(Op::kWrite, last, written)), 0);
  EXPECT_EQ(perform(transfer_of(Op::kRead, last, read)), 0);
  EXPECT_EQ(std::memcmp(written.data(), read.data(), 16 * kKiB), 0);
  EXPECT_TRUE(read.is_zero(16 * kKiB));
}

TEST_P(Conformance, a_lasting_error_is_reported_with_its_errno_and_only_once_tried_again_enough) {
  Buffer written(kUnit, 7), buffer(kUnit);
  ASSERT_TRUE(faults_.add("read:2:EIO,write:1:ENOSPC,discard:1:EROFS,sync:1:EIO"));
  EXPECT_EQ(perform(transfer_of(Op::kRead, 0, buffer)), 0);
  EXPECT_EQ(counted(Counter::store_retries), 0u);
  EXPECT_EQ(perform(transfer_of(Op::kRead, kUnit, buffer)), EIO);
  EXPECT_EQ(counted(Counter::store_retries), kRetriesMax);
  EXPECT_EQ(perform(transfer_of(Op::kWrite, 0, written)), ENOSPC);
  EXPECT_EQ(perform(discard_of(0, kUnit)), EROFS);
  EXPECT_EQ(counted(Counter::store_retries), kRetriesMax);
  EXPECT_EQ(perform(sync_of()), EIO);
  EXPECT_EQ(perform(transfer_of(Op::kRead, 0, buffer)), 0);
  EXPECT_TRUE(buffer.is_zero()) << "a failed write has written";
}

TEST_P(Conformance, a_passing_error_is_retried_and_counted) {
  Buffer written(kUnit, 8), read(kUnit);
  ASSERT_TRUE(faults_.add("write:1:EAGAIN:x1,read:1:EIO:x3"));
  EXPECT_EQ(perform(transfer_of(Op::kWrite, 0, written)), 0);
  EXPECT_EQ(counted(Counter::store_retries), 1u);
  EXPECT_EQ(perform(transfer_of(Op::kRead, 0, read)), 0);
  EXPECT_EQ(counted(Counter::store_retries), 4u);
  EXPECT_EQ(written, read);
}

// The kernel tells of it once; who asked again would hear that all is well.
TEST_P(Conformance, a_sync_that_failed_is_not_tried_again) {
  ASSERT_TRUE(faults_.add("sync:1:EIO:x1,sync:3:EINTR:x1"));
  EXPECT_EQ(perform(sync_of()), EIO);
  EXPECT_EQ(perform(sync_of()), 0);
  EXPECT_EQ(perform(sync_of()), 0);
  EXPECT_EQ(counted(Counter::store_retries), 1u);
}

TEST_P(Conformance, a_short_transfer_is_continued) {
  Buffer written(96 * kKiB, 9), read(96 * kKiB);
  ASSERT_TRUE(faults_.add("short:1+"));
  Request gather = transfer_of(Op::kWrite, 0, written);
  gather.segment_count = 3;
  for (size_t i = 0; i < 3; ++i) gather.segments[i] = {written.data() + i * 32 * kKiB, 32 * kKiB};
  EXPECT_EQ(perform(gather), 0);
  EXPECT_EQ(counted(Counter::store_retries), 1u);
  Request scatter = gather;
  scatter.op = Op::kRead;
  for (size_t i = 0; i < 3; ++i) scatter.segments[i] = {read.data() + i * 32 * kKiB, 32 * kKiB};
  EXPECT_EQ(perform(scatter), 0);
  EXPECT_EQ(counted(Counter::store_retries), 2u);
  EXPECT_EQ(written, read);
}

TEST_P(Conformance, a_full_disk_fails_every_write_until_there_is_room) {
  Buffer buffer(kUnit, 10);
  ASSERT_TRUE(faults_.add("write:2+:ENOSPC"));
  EXPECT_EQ(perform(transfer_of(Op::kWrite, 0, buffer)), 0);
  EXPECT_EQ(perform(transfer_of(Op::kWrite, 0, buffer)), ENOSPC);
  EXPECT_EQ(perform(transfer_of(Op::kWrite, 0, buffer)), ENOSPC);
  faults_.clear();
  EXPECT_EQ(perform(transfer_of(Op::kWrite, 0, buffer)), 0);
}

TEST_P(Conformance, a_delay_is_kept) {
  Buffer buffer(kUnit, 11);
  ASSERT_TRUE(faults_.add("read:1:delay:3000"));
  uint64_t start_ns = platform::monotonic_ns();
  EXPECT_EQ(perform(transfer_of(Op::kRead, 0, buffer)), 0);
  EXPECT_GE(platform::monotonic_ns() - start_ns, 3'000'000u);
}

TEST_P(Conformance, a_discard_the_filesystem_lacks_becomes_zeros) {
  constexpr uint64_t kBytes = 5 * kMiB;  // more than one step of zeros
  Buffer written(kBytes, 12), read(kBytes);
  EXPECT_EQ(perform(transfer_of(Op::kWrite, 0, written)), 0);
  ASSERT_TRUE(faults_.add("discard:1:EOPNOTSUPP:x1"));
  EXPECT_EQ(perform(discard_of(kUnit, kBytes - kUnit)), 0);
  EXPECT_EQ(perform(transfer_of(Op::kRead, 0, read)), 0);
  EXPECT_EQ(std::memcmp(read.data(), written.data(), kUnit), 0);
  EXPECT_TRUE(read.is_zero(kUnit));
}

TEST_P(Conformance, reserving_changes_no_contents) {
  Buffer written(kUnit, 13), read(3 * kUnit);
  EXPECT_EQ(perform(transfer_of(Op::kWrite, 0, written)), 0);
  EXPECT_TRUE(store_->reserve(0, store_->size_bytes()));
  EXPECT_EQ(perform(transfer_of(Op::kRead, 0, read)), 0);
  EXPECT_EQ(std::memcmp(read.data(), written.data(), kUnit), 0);
  EXPECT_TRUE(read.is_zero(kUnit));
}

TEST_P(Conformance, random_operations_agree_with_a_plain_array) {
  constexpr uint64_t kUnits = 64;
  Rng rng(14);
  Buffer model(kUnits * kUnit);
  std::memset(model.data(), 0, model.bytes());
  for (int round = 0; round < 60; ++round) {
    uint64_t first = rng.below(kUnits);
    uint64_t count = 1 + rng.below(kUnits - first);
    std::byte* expected = model.data() + first * kUnit;
    switch (rng.below(3)) {
      case 0: {
        Buffer data(count * kUnit, 100 + static_cast<uint64_t>(round));
        ASSERT_EQ(perform(transfer_of(Op::kWrite, first * kUnit, data)), 0);
        std::memcpy(expected, data.data(), data.bytes());
        break;
      }
      case 1:
        ASSERT_EQ(perform(discard_of(first * kUnit, count * kUnit)), 0);
        std::memset(expected, 0, count * kUnit);
        break;
      default: {
        Buffer data(count * kUnit);
        ASSERT_EQ(perform(transfer_of(Op::kRead, first * kUnit, data)), 0);
        ASSERT_EQ(std::memcmp(expected, data.data(), data.bytes()), 0) << "round " << round;
      }
    }
  }
}

const auto kAllWays = cases({Way::kTransfer, Way::kUring, Way::kAio, Way::kThreads});
INSTANTIATE_TEST_SUITE_P(Every, Conformance, ::testing::ValuesIn(kAllWays),
                         [](const auto& tested) { return name_of(tested.param); });

class QueueConformance : public StoreTest {};

TEST_P(QueueConformance, a_batch_deeper_than_the_queue_is_done_piece_by_piece) {
  constexpr size_t kCount = 100;
  std::vector<Buffer> written, read;
  std::vector<Request> writes, reads;
  for (size_t i = 0; i < kCount; ++i) {
    written.emplace_back(kUnit, i + 1);
    read.emplace_back(kUnit);
    writes.push_back(transfer_of(Op::kWrite, i * kUnit, written[i]));
    reads.push_back(transfer_of(Op::kRead, i * kUnit, read[i]));
  }
  for (int error : perform(writes)) EXPECT_EQ(error, 0);
  for (int error : perform(reads)) EXPECT_EQ(error, 0);
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(written[i], read[i]) << i;
}

TEST_P(QueueConformance, submit_takes_no_more_than_its_depth) {
  Buffer buffer((kDepth + 5) * kUnit);
  std::vector<Request> requests(kDepth + 5, transfer_of(Op::kRead, 0, buffer));
  for (size_t i = 0; i < requests.size(); ++i) requests[i].segments[0] = {buffer.data() + i * kUnit, kUnit};
  std::vector<Request*> pointers;
  for (Request& request : requests) pointers.push_back(&request);
  EXPECT_EQ(queue_->submit(pointers), kDepth);
  EXPECT_EQ(queue_->in_flight(), kDepth);
  EXPECT_EQ(queue_->submit(std::span(pointers).subspan(kDepth)), 0u);
  size_t reaped = 0;
  while (reaped < kDepth) {
    queue_->wait(kHangNs);
    Completion done[2];
    reaped += queue_->reap(done);
  }
  EXPECT_EQ(queue_->in_flight(), 0u);
}

TEST_P(QueueConformance, good_and_bad_requests_of_a_batch_each_get_their_own_outcome) {
  Buffer buffer(30 * kUnit);
  std::vector<Request> requests(30, transfer_of(Op::kRead, 0, buffer));
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].segments[0] = {buffer.data() + i * kUnit, kUnit};
    if (i % 3 == 0) requests[i].offset_bytes = 1;
  }
  std::vector<int> errors = perform(requests);
  for (size_t i = 0; i < errors.size(); ++i) EXPECT_EQ(errors[i], i % 3 == 0 ? EINVAL : 0) << i;
}

// However the results came, what has announced them does not wake anybody for ever.
TEST_P(QueueConformance, a_waiter_sleeps_once_all_is_reaped) {
  constexpr uint64_t kShortNs = 30'000'000;
  Buffer buffer(kDepth * kUnit);
  std::vector<Request> requests(kDepth, transfer_of(Op::kRead, 0, buffer));
  std::vector<Request*> pointers;
  for (size_t i = 0; i < kDepth; ++i) {
    requests[i].segments[0] = {buffer.data() + i * kUnit, kUnit};
    pointers.push_back(&requests[i]);
  }
  ASSERT_EQ(queue_->submit(pointers), kDepth);
  std::vector<Completion> done(kDepth);
  for (size_t reaped = 0; reaped < kDepth;) {
    queue_->wait(kHangNs);
    reaped += queue_->reap(std::span(done).first(kDepth - reaped));  // never asked for more than there are
  }
  uint64_t slept_ns = 0;
  for (int i = 0; i < 3 && slept_ns < kShortNs / 2; ++i) {
    const uint64_t begin_ns = platform::monotonic_ns();
    queue_->wait(kShortNs);
    slept_ns = platform::monotonic_ns() - begin_ns;
    EXPECT_EQ(queue_->reap(done), 0u);
  }
  EXPECT_GE(slept_ns, kShortNs / 2);
}

TEST_P(QueueConformance, wait_times_out_and_an_idle_queue_has_nothing_to_reap) {
  Completion done[1];
  EXPECT_EQ(queue_->reap(done), 0u);
  queue_->wait(1'000'000);
  EXPECT_EQ(queue_->reap(done), 0u);
}

TEST_P(QueueConformance, wake_ends_a_wait_now_or_the_next) {
  queue_->wake();
  queue_->wait(UINT64_MAX);
  Atomic<bool> ended(false);
  std::thread waiter([&] {
    queue_->wait(UINT64_MAX);
    ended.store_release(true);
  });
  platform::sleep_ns(5'000'000);
  EXPECT_FALSE(ended.load_acquire());
  queue_->wake();
  waiter.join();
}

TEST_P(QueueConformance, one_thread_waits_while_another_submits_and_reaps) {
  constexpr int kRounds = 60;
  Buffer buffer(kUnit, 1);
  Atomic<bool> over(false);
  Atomic<uint64_t> waits(0);
  std::thread waiter([&] {
    while (!over.load_acquire()) {
      queue_->wait(kHangNs);
      waits.fetch_add_relaxed(1);
    }
  });
  int errors = 0;
  for (int round = 0; round < kRounds; ++round) {
    Request request = round % 5 == 0 ? sync_of() : transfer_of(round % 2 ? Op::kRead : Op::kWrite, 0, buffer);
    Request* pointer = &request;
    ASSERT_EQ(queue_->submit({&pointer, 1}), 1u);
    Completion done[1];
    while (queue_->reap(done) == 0) {
    }
    errors += done[0].error != 0;
  }
  over.store_release(true);
  queue_->wake();
  waiter.join();
  EXPECT_EQ(errors, 0);
}

TEST_P(QueueConformance, a_waiter_sees_every_completion_that_another_thread_submitted) {
  Buffer buffer(kUnit, 1);
  for (int round = 0; round < 40; ++round) {
    Request request = round % 3 == 0 ? transfer_of(Op::kRead, 1, buffer) : transfer_of(Op::kRead, 0, buffer);
    std::thread submitter([&] {
      Request* pointer = &request;
      EXPECT_EQ(queue_->submit({&pointer, 1}), 1u);
    });
    uint64_t start_ns = platform::monotonic_ns();
    queue_->wait(kHangNs);
    EXPECT_LT(platform::monotonic_ns() - start_ns, kHangNs);
    submitter.join();
    Completion done[1];
    while (queue_->reap(done) == 0) queue_->wait(kHangNs);
    EXPECT_EQ(done[0].request, &request);
    EXPECT_EQ(done[0].error, round % 3 == 0 ? EINVAL : 0);
  }
}

TEST_P(QueueConformance, what_was_enqueued_is_done_after_a_kick_by_any_thread) {
  Buffer written(kUnit, 3), read(kUnit);
  for (auto [op, buffer] : {std::pair(Op::kWrite, &written), std::pair(Op::kRead, &read)}) {
    Request request = transfer_of(op, 0, *buffer);
    Request* pointer = &request;
    ASSERT_EQ(queue_->enqueue({&pointer, 1}), 1u);
    EXPECT_EQ(queue_->in_flight(), 1u);
    std::thread([&] { queue_->kick(); }).join();
    Completion done[1];
    const uint64_t start_ns = platform::monotonic_ns();
    while (queue_->reap(done) == 0)
      ASSERT_LT(platform::monotonic_ns() - start_ns, kHangNs);  // not by waiting
    EXPECT_EQ(done[0].error, 0);
  }
  EXPECT_EQ(written, read);
}

TEST_P(QueueConformance, a_wait_starts_what_was_enqueued) {
  Buffer buffer(kUnit);
  Request request = transfer_of(Op::kRead, 0, buffer);
  Request* pointer = &request;
  ASSERT_EQ(queue_->enqueue({&pointer, 1}), 1u);
  const uint64_t start_ns = platform::monotonic_ns();
  Completion done[1];
  while (queue_->reap(done) == 0 && platform::monotonic_ns() - start_ns < kHangNs) queue_->wait(kHangNs);
  EXPECT_EQ(done[0].request, &request);
  EXPECT_EQ(done[0].error, 0);
}

// Whoever finds another thread kicking leaves to it what was enqueued: nothing may stay behind.
TEST_P(QueueConformance, many_threads_kick_and_nothing_stays_behind) {
  constexpr int kKickers = 3, kRounds = 300 / SPW_SLOWED;
  Buffer buffer(kDepth * kUnit);
  Atomic<int> wanted(0);
  std::vector<std::thread> kickers;
  for (int k = 0; k < kKickers; ++k)
    kickers.emplace_back([&] {
      for (int seen = 0; seen < kRounds;) {
        const int now = wanted.load_acquire();
        if (now > seen) queue_->kick();
        seen = now;
      }
    });
  const uint64_t start_ns = platform::monotonic_ns();
  for (int round = 1; round <= kRounds; ++round) {
    std::vector<Request> requests(static_cast<size_t>(round) % kDepth + 1, transfer_of(Op::kRead, 0, buffer));
    for (size_t i = 0; i < requests.size(); ++i) {
      requests[i].segments[0] = {buffer.data() + i * kUnit, kUnit};
      Request* pointer = &requests[i];
      ASSERT_EQ(queue_->enqueue({&pointer, 1}), 1u);
    }
    wanted.store_release(round);
    for (size_t reaped = 0; reaped < requests.size();) {
      Completion done[kDepth];
      reaped += queue_->reap(done);
      ASSERT_LT(platform::monotonic_ns() - start_ns, 6 * kHangNs) << "in round " << round;
    }
  }
  for (std::thread& kicker : kickers) kicker.join();
}

TEST_P(QueueConformance, a_delayed_request_is_not_reaped_before_its_time_and_others_may_be) {
  constexpr uint64_t kDelayNs = 20'000'000;
  ASSERT_TRUE(faults_.add("read:1:delay:20000"));
  Buffer first(kUnit), second(kUnit);
  Request slow = transfer_of(Op::kRead, 0, first), fast = transfer_of(Op::kRead, kUnit, second);
  Request* pointers[] = {&slow, &fast};
  uint64_t start_ns = platform::monotonic_ns();
  ASSERT_EQ(queue_->submit(pointers), 2u);
  for (size_t reaped = 0; reaped < 2;) {
    Completion done[1];
    if (queue_->reap(done) == 0) {
      queue_->wait(kHangNs);
      continue;
    }
    ++reaped;
    EXPECT_EQ(done[0].error, 0);
    if (done[0].request == &slow) {
      EXPECT_GE(platform::monotonic_ns() - start_ns, kDelayNs);
    }
  }
  EXPECT_LT(platform::monotonic_ns() - start_ns, kHangNs) << "a wait overslept";
}

TEST_P(QueueConformance, queues_of_several_threads_do_not_meet) {
  constexpr size_t kThreads = 4;
  std::vector<std::thread> threads;
  Atomic<int> failures(0);
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      auto queue = store_->open_queue(4);
      if (!queue) return static_cast<void>(failures.fetch_add_relaxed(1));
      for (uint64_t round = 0; round < 20; ++round) {
        std::vector<Buffer> written, read;
        std::vector<Request> requests;
        for (uint64_t i = 0; i < 10; ++i) {
          written.emplace_back(kUnit, t * 1000 + round * 10 + i + 1);
          read.emplace_back(kUnit);
        }
        for (Op op : {Op::kWrite, Op::kRead}) {
          requests.clear();
          for (uint64_t i = 0; i < 10; ++i)
            requests.push_back(
                transfer_of(op, (t * 10 + i) * kUnit, op == Op::kWrite ? written[i] : read[i]));
          std::vector<Request*> pointers;
          for (Request& request : requests) pointers.push_back(&request);
          for (int error : drive(**queue, pointers)) failures.fetch_add_relaxed(error != 0);
        }
        for (size_t i = 0; i < 10; ++i) failures.fetch_add_relaxed(!(written[i] == read[i]));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load_relaxed(), 0);
}

TEST_P(QueueConformance, a_queue_that_is_given_up_leaves_no_transfer_behind) {
  Buffer buffer(256 * kKiB, 1);
  Request request = transfer_of(Op::kRead, 0, buffer);
  Request* pointer = &request;
  ASSERT_EQ(queue_->submit({&pointer, 1}), 1u);
  queue_.reset();
  std::memset(buffer.data(), 5, buffer.bytes());
  platform::sleep_ns(2'000'000);
  for (uint64_t at = 0; at < buffer.bytes(); ++at) ASSERT_EQ(buffer.data()[at], std::byte{5});
}

const auto kQueueWays = cases({Way::kUring, Way::kAio, Way::kThreads});
INSTANTIATE_TEST_SUITE_P(Every, QueueConformance, ::testing::ValuesIn(kQueueWays),
                         [](const auto& tested) { return name_of(tested.param); });

}  // namespace
}  // namespace spw::store
