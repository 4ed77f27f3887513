// Threads that are told of the end of asynchronous I/O on managed memory.
#include <pthread.h>

#include <algorithm>
#include <atomic>

#include "aio_fixture.h"
#include "libc/aio/aio_notify.h"

namespace spw::libc {
namespace {

#if SPW_FOREIGN_THREADS
std::atomic<int> g_told{0};

TEST_F(AioTest, a_thread_that_is_told_finds_what_was_read) {
  static char* where;
  static const char* expected;
  where = b.managed();
  expected = a.plain();
  g_told = 0;
  auto look = [](sigval of) {
    char got[100];
    copy_bytes(got, where + of.sival_int * 100, 100);
    EXPECT_TRUE(std::equal(got, got + 100, expected + of.sival_int * 100));
    ++g_told;
  };
  Twin attributes(space, 4096);
  auto* managed_attributes = reinterpret_cast<pthread_attr_t*>(attributes.managed());
  pthread_attr_t own;
  pthread_attr_init(&own);
  pthread_attr_setdetachstate(&own, PTHREAD_CREATE_DETACHED);
  store_value(managed_attributes, own);
  for (int i = 0; i < 20; ++i) {
    aiocb block = wanted(b.managed() + i * 100, 100, i * 100);
    block.aio_sigevent.sigev_notify = SIGEV_THREAD;
    block.aio_sigevent.sigev_notify_function = look;
    block.aio_sigevent.sigev_notify_attributes = i % 2 == 0 ? nullptr : managed_attributes;
    block.aio_sigevent.sigev_value.sival_int = i;
    ASSERT_EQ(aio_transfer(managed(block, static_cast<size_t>(i)), true), 0);
  }
  for (int i = 0; i < 10000 && g_told < 20; ++i) usleep(1000);
  EXPECT_EQ(g_told, 20);
  EXPECT_TRUE(posix_shadows.is_empty());
}

// The last one: the copies stay.
TEST_F(AioTest, more_attributes_of_threads_than_there_are_copies_of_are_refused) {
  g_told = 0;
  Twin attributes(space, 4096);
  auto* managed_attributes = reinterpret_cast<pthread_attr_t*>(attributes.managed());
  aiocb block = wanted(b.managed(), 100, 0);
  block.aio_sigevent.sigev_notify = SIGEV_THREAD;
  block.aio_sigevent.sigev_notify_function = [](sigval) { ++g_told; };
  block.aio_sigevent.sigev_notify_attributes = managed_attributes;
  int taken = 0;
  for (unsigned i = 0; i <= kAttributesMax; ++i) {
    pthread_attr_t own;
    pthread_attr_init(&own);
    pthread_attr_setdetachstate(&own, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&own, (i + 1) << 20);
    store_value(managed_attributes, own);
    aiocb* request = managed(block);
    if (aio_transfer(request, true) == 0) {
      ++taken;
      EXPECT_EQ(finish(request), 100);
      continue;
    }
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(aio_state(request), EAGAIN);
  }
  EXPECT_GE(taken, static_cast<int>(kAttributesMax) - 1);
  EXPECT_LE(taken, static_cast<int>(kAttributesMax));
  // As is a list that tells so, with every block of it.
  aiocb own = wanted(b.plain(), 100, 0), other = wanted(b.managed(), 100, 0);
  own.aio_lio_opcode = other.aio_lio_opcode = LIO_READ;
  aiocb* list[] = {&own, &other};
  EXPECT_EQ(aio_list(LIO_NOWAIT, list, 2, &block.aio_sigevent), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(aio_state(&own), EAGAIN);
  EXPECT_EQ(aio_state(&other), EAGAIN);
  for (int i = 0; i < 10000 && g_told < taken; ++i) usleep(1000);
  EXPECT_EQ(g_told, taken);
}
#else
TEST_F(AioTest, a_thread_that_is_told_finds_what_was_read) {
  GTEST_SKIP() << "the thread sanitizer does not know threads that libc starts by itself";
}
#endif

}  // namespace
}  // namespace spw::libc
