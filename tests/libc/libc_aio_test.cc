// POSIX asynchronous I/O on managed memory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "aio_fixture.h"

namespace spw::libc {
namespace {

TEST_F(AioTest, what_is_read_is_there_once_the_end_is_seen_and_not_before) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  aiocb block = wanted(b.managed() + 7, 5000, 0);
  block.aio_fildes = ends[0];
  aiocb* request = managed(block);
  ASSERT_EQ(aio_transfer(request, true), 0);
  EXPECT_EQ(aio_state(request), EINPROGRESS);
  EXPECT_FALSE(posix_shadows.is_empty());
  ASSERT_EQ(write(ends[1], a.plain(), 3000), 3000);
  EXPECT_EQ(finish(request), 3000);
  EXPECT_TRUE(posix_shadows.is_empty());
  std::copy_n(a.plain(), 3000, b.plain() + 7);
  b.expect_same();
  // From here on the block itself tells.
  EXPECT_EQ(aio_state(request), 0);
  EXPECT_EQ(aio_result(request), 3000);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(AioTest, blocks_and_buffers_are_managed_in_every_combination) {
  std::vector<char> native(10000);
  for (const bool is_block_managed : {false, true})
    for (const bool is_buffer_managed : {false, true}) {
      aiocb own = wanted(is_buffer_managed ? b.managed() + 4090 : native.data(), 10000, 123);
      aiocb* block = is_block_managed ? managed(own) : &own;
      ASSERT_EQ(aio_transfer(block, true), 0);
      EXPECT_EQ(posix_shadows.is_empty(), !is_block_managed && !is_buffer_managed);
      EXPECT_EQ(finish(block), 10000);
      const std::vector<char> got = is_buffer_managed ? b.contents() : native;
      EXPECT_TRUE(
          std::equal(a.plain() + 123, a.plain() + 10123, got.begin() + (is_buffer_managed ? 4090 : 0)));
      own = wanted(is_buffer_managed ? b.managed() + 4090 : native.data(), 10000, 2 * kBytes);
      if (is_block_managed) managed(own);
      ASSERT_EQ(aio_transfer(block, false), 0);
      EXPECT_EQ(finish(block), 10000);
      std::vector<char> written(10000);
      EXPECT_EQ(pread(file, written.data(), 10000, 2 * kBytes), 10000);
      EXPECT_TRUE(std::equal(written.begin(), written.end(), a.plain() + 123));
    }
}

TEST_F(AioTest, no_bytes_and_one_byte) {
  aiocb* none = managed(wanted(b.managed(), 0, 0));
  ASSERT_EQ(aio_transfer(none, true), 0);
  EXPECT_EQ(finish(none), 0);
  aiocb* one = managed(wanted(b.managed() + 4095, 1, 9), 1);
  ASSERT_EQ(aio_transfer(one, true), 0);
  EXPECT_EQ(finish(one), 1);
  b.plain()[4095] = a.plain()[9];
  b.expect_same();
  aiocb* past = managed(wanted(b.managed(), 100, kBytes), 2);
  ASSERT_EQ(aio_transfer(past, true), 0);
  EXPECT_EQ(finish(past), 0);
  b.expect_same();
}

TEST_F(AioTest, a_block_tells_why_it_was_refused) {
  aiocb block = wanted(b.managed(), 100, 0);
  block.aio_reqprio = -1;
  aiocb* request = managed(block);
  EXPECT_EQ(aio_transfer(request, true), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(aio_state(request), EINVAL);
  EXPECT_EQ(aio_result(request), -1);
  EXPECT_EQ(aio_sync(12345, managed(block, 1)), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(AioTest, more_than_the_limit_under_way_is_refused_until_some_is_over) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  constexpr size_t kHalf = kShadowBytesMax / 2;
  Twin large(space, kHalf);
  aiocb block = wanted(large.managed(), kHalf, 0);
  block.aio_fildes = ends[0];
  aiocb *first = managed(block, 0), *second = managed(block, 1);
  ASSERT_EQ(aio_transfer(first, true), 0);
  ASSERT_EQ(aio_transfer(second, true), 0);
  aiocb* third = managed(wanted(b.managed(), 1, 0), 2);
  EXPECT_EQ(aio_transfer(third, true), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(aio_state(third), EAGAIN);
  ASSERT_EQ(write(ends[1], "ab", 2), 2);
  EXPECT_EQ(finish(first), 2);
  EXPECT_EQ(aio_transfer(third, true), 0);
  close(ends[1]);
  EXPECT_EQ(finish(third), 1);
  EXPECT_EQ(finish(second), 0);
  close(ends[0]);
}

TEST_F(AioTest, one_of_more_than_the_limit_is_whole_in_a_file_and_short_elsewhere) {
  constexpr size_t kLarge = kShadowBytesMax + 100000;
  Twin large(space, kLarge);
  large.randomise(rng);
  aiocb* out = managed(wanted(large.managed(), kLarge, 0));
  ASSERT_EQ(aio_transfer(out, false), 0);
  EXPECT_EQ(finish(out), static_cast<ssize_t>(kLarge));
  Twin back(space, kLarge);
  aiocb* in = managed(wanted(back.managed(), kLarge, 0));
  ASSERT_EQ(aio_transfer(in, true), 0);
  EXPECT_EQ(finish(in), static_cast<ssize_t>(kLarge));
  EXPECT_TRUE(back.contents() == large.contents());
  const int null = open("/dev/null", O_WRONLY);
  aiocb block = wanted(large.managed(), kLarge, 0);
  block.aio_fildes = null;
  aiocb* nowhere = managed(block);
  ASSERT_EQ(aio_transfer(nowhere, false), 0);
  EXPECT_EQ(finish(nowhere), static_cast<ssize_t>(kShadowBytesMax));
  close(null);
}

TEST_F(AioTest, lists_mix_kinds_of_memory_and_may_be_long) {
  constexpr int kCount = 100;
  std::vector<char> native(kCount * 100);
  std::vector<aiocb> own(kCount);
  Twin list(space, 8192);
  auto** place = reinterpret_cast<aiocb**>(list.managed() + 4096 - 12 * sizeof(void*));
  for (int i = 0; i < kCount; ++i) {
    own[i] = wanted((i % 3 == 0 ? native.data() : b.managed()) + i * 100, 100, i * 1000);
    own[i].aio_lio_opcode = i == 50 ? LIO_NOP : LIO_READ;
    store_value(place + i, i % 40 == 1 ? managed(own[i], static_cast<size_t>(i) / 40)
                           : i == 60   ? nullptr
                                       : &own[i]);
  }
  ASSERT_EQ(aio_list(LIO_WAIT, place, kCount, nullptr), 0);
  EXPECT_TRUE(posix_shadows.is_empty());
  const std::vector<char> got = b.contents();
  for (int i = 0; i < kCount; ++i) {
    if (i == 50 || i == 60) continue;
    const char* from = (i % 3 == 0 ? native.data() : got.data()) + i * 100;
    EXPECT_TRUE(std::equal(from, from + 100, a.plain() + i * 1000)) << i;
    EXPECT_EQ(aio_result(load_value(place + i)), 100) << i;
  }
  own[3].aio_fildes = -1;
  EXPECT_EQ(aio_list(LIO_WAIT, place, kCount, nullptr), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(aio_state(&own[3]), EBADF);
}

TEST_F(AioTest, a_queued_request_is_cancelled_and_a_running_one_is_not) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  aiocb block = wanted(b.managed(), 100, 0);
  block.aio_fildes = ends[0];
  aiocb* requests[4];
  for (size_t i = 0; i < 4; ++i) ASSERT_EQ(aio_transfer(requests[i] = managed(block, i), true), 0);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  EXPECT_EQ(finish(requests[0]), 1);  // so libc's thread is at the next
  EXPECT_EQ(aio_abandon(ends[0], requests[2]), AIO_CANCELED);
  EXPECT_EQ(aio_state(requests[2]), ECANCELED);
  EXPECT_EQ(aio_abandon(ends[0], nullptr), AIO_NOTCANCELED);
  EXPECT_EQ(aio_state(requests[3]), ECANCELED);
  EXPECT_EQ(aio_state(requests[1]), EINPROGRESS);
  close(ends[1]);
  EXPECT_EQ(finish(requests[1]), 0);
  EXPECT_EQ(aio_abandon(ends[0], requests[1]), AIO_ALLDONE);
  close(ends[0]);
}

TEST_F(AioTest, a_block_that_is_under_way_is_not_taken_again) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  aiocb* request = managed_read_of(ends[0]);
  ASSERT_EQ(aio_transfer(request, true), 0);
  EXPECT_EQ(aio_transfer(request, true), -1);
  EXPECT_EQ(errno, EINVAL);
  close(ends[1]);
  EXPECT_EQ(finish(request), 0);
  EXPECT_EQ(aio_transfer(request, true), 0);
  EXPECT_EQ(finish(request), 0);
  close(ends[0]);
}

TEST_F(AioTest, a_native_request_may_reuse_the_block_of_one_that_nobody_asked_for) {
  aiocb own = wanted(b.managed(), 1000, 0);
  ASSERT_EQ(aio_transfer(&own, true), 0);
  char native[500];
  own.aio_buf = native;
  own.aio_nbytes = 500;
  own.aio_offset = 2000;
  while (aio_transfer(&own, true) != 0) {  // until the first is over, which nobody asks for
    ASSERT_EQ(errno, EINVAL);
    usleep(1000);
  }
  EXPECT_EQ(finish(&own), 500);
  EXPECT_TRUE(std::equal(native, native + 500, a.plain() + 2000));
  std::copy_n(a.plain(), 1000, b.plain());
  b.expect_same();
}

TEST_F(AioTest, of_many_threads_that_see_an_end_one_copies_and_all_find_it_there) {
  for (int round = 0; round < 50; ++round) {
    aiocb* request = managed(wanted(b.managed(), 100000, round));
    ASSERT_EQ(aio_transfer(request, true), 0);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        const aiocb* list[] = {request};
        const timespec soon{1, 0};
        while (aio_state(request) == EINPROGRESS) aio_wait(list, 1, t % 2 == 0 ? nullptr : &soon);
        EXPECT_EQ(aio_result(request), 100000);
        char last;
        copy_bytes(&last, b.managed() + 99999, 1);
        EXPECT_EQ(last, a.plain()[99999 + round]);
      });
    for (auto& thread : threads) thread.join();
    ASSERT_TRUE(posix_shadows.is_empty());
  }
}

TEST_F(AioTest, what_one_thread_waits_for_another_may_hand_over_again) {
  aiocb* request = managed(wanted(b.managed(), 1000, 0));
  std::atomic<bool> over{false};
  std::thread waiter([&] {
    const aiocb* list[] = {request};
    const timespec soon{0, 1000};
    while (!over) aio_wait(list, 1, &soon);
  });
  for (int round = 0; round < 5000; ++round) {
    ASSERT_EQ(aio_transfer(request, true), 0);
    ASSERT_EQ(finish(request), 1000);
  }
  over = true;
  waiter.join();
  std::copy_n(a.plain(), 1000, b.plain());
  b.expect_same();
}

TEST_F(AioTest, a_later_end_on_a_descriptor_tells_of_the_earlier_ones) {
  for (const bool is_last_plain : {false, true}) {
    aiocb* first = managed(wanted(b.managed(), 1000, 0));
    char native[1000];
    aiocb own = wanted(native, 1000, 3000);
    aiocb* last = is_last_plain ? &own : managed(wanted(b.managed() + 5000, 1000, 3000), 1);
    ASSERT_EQ(aio_transfer(first, true), 0);
    ASSERT_EQ(aio_transfer(last, true), 0);
    EXPECT_EQ(finish(last), 1000);
    EXPECT_TRUE(posix_shadows.is_empty());
    const std::vector<char> got = b.contents();
    EXPECT_TRUE(std::equal(a.plain(), a.plain() + 1000, got.begin()));
  }
}

TEST_F(AioTest, a_sync_that_is_over_ends_what_was_written_before) {
  aiocb* write = managed(wanted(a.managed(), 100000, 0));
  aiocb own = wanted(nullptr, 0, 0);
  ASSERT_EQ(aio_transfer(write, false), 0);
  ASSERT_EQ(aio_sync(O_SYNC, &own), 0);
  EXPECT_EQ(finish(&own), 0);
  EXPECT_TRUE(posix_shadows.is_empty());
}

TEST_F(AioTest, what_is_done_at_once_is_checked_first_and_waits_for_its_turn) {
  constexpr size_t kLarge = kShadowBytesMax + 4096, kOthers = 16 * kMiB;
  Twin large(space, kLarge);
  large.randomise(rng);
  aiocb block = wanted(large.managed(), kLarge, -1);
  aiocb* before = managed(block);
  ASSERT_EQ(aio_transfer(before, false), 0);
  const aiocb* list[] = {before};
  while (aio_state(before) == EINPROGRESS) aio_wait(list, 1, nullptr);
  EXPECT_EQ(aio_state(before), EINVAL);
  EXPECT_EQ(aio_result(before), -1);
  block.aio_offset = 0;
  block.aio_reqprio = -1;
  aiocb* urgent = managed(block, 1);
  EXPECT_EQ(aio_transfer(urgent, false), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(aio_state(urgent), EINVAL);
  char first;
  EXPECT_EQ(pread(file, &first, 1, 0), 1);
  EXPECT_EQ(first, a.plain()[0]);
  std::vector<char> other(kOthers, 'x');
  aiocb queued[4];
  for (aiocb& each : queued) {
    each = wanted(other.data(), kOthers, 0);
    ASSERT_EQ(aio_transfer(&each, false), 0);
  }
  block.aio_reqprio = 0;
  aiocb* all = managed(block, 2);
  ASSERT_EQ(aio_transfer(all, false), 0);
  EXPECT_EQ(finish(all), static_cast<ssize_t>(kLarge));
  for (aiocb& each : queued) EXPECT_EQ(finish(&each), static_cast<ssize_t>(kOthers));
  std::vector<char> written(kLarge);
  EXPECT_EQ(pread(file, written.data(), kLarge, 0), static_cast<ssize_t>(kLarge));
  EXPECT_TRUE(written == large.contents());
}

TEST_F(AioTest, more_bytes_than_there_can_be_are_refused_by_the_kernel) {
  aiocb* request = managed(wanted(b.managed(), SIZE_MAX, 0));
  ASSERT_EQ(aio_transfer(request, true), 0);
  const aiocb* list[] = {request};
  while (aio_state(request) == EINPROGRESS) aio_wait(list, 1, nullptr);
  EXPECT_NE(aio_state(request), 0);
  EXPECT_EQ(aio_result(request), -1);
}

TEST_F(AioTest, a_thread_that_is_cancelled_while_it_waits_holds_nothing) {
  for (const size_t count : {1U, 100U}) {  // a list on the stack, and one of its own
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    aiocb* request = managed_read_of(ends[0]);
    ASSERT_EQ(aio_transfer(request, true), 0);
    std::vector<const aiocb*> list(count);
    list.back() = request;
    std::atomic<bool> is_there{false};
    std::thread waiter([&] {
      is_there = true;
      aio_wait(list.data(), static_cast<int>(count), nullptr);
      ADD_FAILURE() << "not cancelled";
    });
    while (!is_there) usleep(1000);
    usleep(10000);
    EXPECT_EQ(pthread_cancel(waiter.native_handle()), 0);
    waiter.join();
    close(ends[1]);
    EXPECT_EQ(finish(request), 0);
    close(ends[0]);
    free_unused_shadows();
    EXPECT_EQ(shadow_count(), 0U);
  }
}

TEST_F(AioTest, refused_entries_of_a_list_leave_nothing_behind) {
  Twin large(space, kMiB);
  for (int round = 0; round < 70; ++round) {
    aiocb block = wanted(large.managed(), kMiB, 0);
    block.aio_lio_opcode = LIO_WRITE;
    block.aio_reqprio = -1;
    block.aio_sigevent.sigev_notify = SIGEV_THREAD;
    block.aio_sigevent.sigev_notify_function = [](sigval) { ADD_FAILURE() << "told"; };
    aiocb* refused = managed(block);
    aiocb* list[] = {refused};
    ASSERT_EQ(aio_list(LIO_NOWAIT, list, 1, nullptr), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(aio_state(refused), EINVAL);
  }
  free_unused_shadows();
  EXPECT_EQ(shadow_count(), 0U);
}

TEST_F(AioTest, a_list_names_a_block_that_is_under_way) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  aiocb own = wanted(b.managed(), 100, 0), other = wanted(b.managed() + 200, 100, 0);
  own.aio_fildes = ends[0];
  ASSERT_EQ(aio_transfer(&own, true), 0);
  char native[100];
  own.aio_buf = native;  // the request has its own copy
  own.aio_lio_opcode = other.aio_lio_opcode = LIO_READ;
  aiocb* list[] = {&own, &other};
  EXPECT_EQ(aio_list(LIO_NOWAIT, list, 2, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(aio_state(&own), EINPROGRESS);
  close(ends[1]);
  EXPECT_EQ(finish(&own), 0);
  EXPECT_EQ(finish(&other), 100);
  close(ends[0]);
}

}  // namespace
}  // namespace spw::libc
