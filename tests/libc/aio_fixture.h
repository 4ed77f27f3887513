// POSIX asynchronous I/O on managed memory: what its tests stand on.
#pragma once

#include <aio.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "fake_access.h"
#include "libc/aio/aio.h"
#include "libc/managed.h"

namespace spw::libc {

using testing::FakeManagedSpace;
using testing::Twin;

inline constexpr size_t kBytes = 300000;

// The thread sanitizer does not know threads that libc starts by itself: these start none, nor call anybody.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SPW_FOREIGN_THREADS 0
#endif
#endif
#ifndef SPW_FOREIGN_THREADS
#define SPW_FOREIGN_THREADS 1
#endif
inline void keep_to_one_thread() {
  aioinit settings{};
  settings.aio_threads = 1;
  if (!SPW_FOREIGN_THREADS) aio_init(&settings);
}

struct AioTest : ::testing::Test {
  AioTest() {
    keep_to_one_thread();
    a.randomise(rng);
    EXPECT_EQ(pwrite(file, a.plain(), kBytes, 0), static_cast<ssize_t>(kBytes));
  }
  ~AioTest() override {
    EXPECT_TRUE(posix_shadows.is_empty());
    free_unused_shadows();
    EXPECT_EQ(shadow_count(), 0U);
    close(file);
  }

  aiocb wanted(char* buffer, size_t bytes, off_t offset) const {
    aiocb block{};
    block.aio_fildes = file;
    block.aio_buf = buffer;
    block.aio_nbytes = bytes;
    block.aio_offset = offset;
    block.aio_sigevent.sigev_notify = SIGEV_NONE;
    return block;
  }
  // In managed memory, across the end of a block.
  aiocb* managed(const aiocb& block, size_t number = 0) {
    auto* place = reinterpret_cast<aiocb*>(blocks.managed() + number * 8192 + 4096 - 40);
    store_value(place, block);
    return place;
  }
  // Reads from the end of a pipe, which has no positions.
  aiocb* managed_read_of(int end) {
    aiocb block = wanted(b.managed(), 100, 0);
    block.aio_fildes = end;
    return managed(block);
  }
  static ssize_t finish(aiocb* block) {
    const aiocb* list[] = {block};
    while (aio_state(block) == EINPROGRESS) EXPECT_EQ(aio_wait(list, 1, nullptr), 0);
    return aio_result(block);
  }

  FakeManagedSpace space;
  Rng rng{1};
  Twin a{space, kBytes}, b{space, kBytes}, blocks{space, 400000};
  int file = fileno(tmpfile());
};

}  // namespace spw::libc
