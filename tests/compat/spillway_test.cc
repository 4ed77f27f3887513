// libumap over the runtime: what UMAP_ variables become, and what pins and failing writes do there.
#include "spillway/spillway.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "umap/umap.h"

namespace {

TEST(Spillway, variables_are_options_of_the_runtime) {
  ASSERT_STREQ(std::getenv("UMAP_BUFSIZE"), "4096") << "run by ctest";
  EXPECT_EQ(spw_memory_limit(), uint64_t{4096} * umapcfg_get_umap_page_size());
  spw_statistics now{};
  now.size = sizeof now;
  ASSERT_EQ(spw_get_statistics(&now), 0);
  EXPECT_EQ(now.block_bytes, umapcfg_get_umap_page_size());
  EXPECT_EQ(umapcfg_get_max_pages_in_buffer(), 4096u);
  void* own = std::malloc(3 << 20);
  EXPECT_EQ(spw_is_managed(own), 0) << "what the program allocates is its own";
  std::free(own);
}

class ZeroStore : public Umap::Store {
 public:
  ssize_t read_from_store(char* buf, std::size_t nb, off_t) override {
    std::memset(buf, 0, nb);
    return static_cast<ssize_t>(nb);
  }
  ssize_t write_to_store(char*, std::size_t nb, off_t) override {
    if (error == 0) return static_cast<ssize_t>(nb);
    if (throws) throw 1;
    errno = error;
    return -1;
  }
  int error = 0;  // of writes
  bool throws = false;
};

// A store that nothing can be read of.
class UnreadableStore : public ZeroStore {
 public:
  ssize_t read_from_store(char*, std::size_t, off_t) override {
    errno = ENXIO;
    return -1;
  }
};

TEST(Spillway, pinned_pages_stay_until_they_are_unmapped) {
  ZeroStore store;
  constexpr std::size_t kBytes = 4 << 20;
  for (int round = 0; round < 4; ++round) {
    auto* data = static_cast<char*>(
        Umap::umap_ex(nullptr, kBytes, PROT_READ | PROT_WRITE, UMAP_PRIVATE, -1, 0, &store));
    ASSERT_NE(data, UMAP_FAILED);
    errno = 0;
    umap_fetch_and_pin(data, kBytes);
    EXPECT_EQ(errno, 0);
    spw_statistics now{};
    now.size = sizeof now;
    ASSERT_EQ(spw_get_statistics(&now), 0);
    EXPECT_EQ(now.pinned_bytes, kBytes);
    umap_fetch_and_pin(data, kBytes);
    EXPECT_EQ(errno, ENOMEM) << "half of the memory at most";
    EXPECT_EQ(uunmap(data, kBytes), 0);
  }
}

TEST(Spillway, a_write_that_fails_is_told_and_the_mapping_goes_anyway) {
  ZeroStore store;
  auto* data = static_cast<char*>(
      Umap::umap_ex(nullptr, 1 << 20, PROT_READ | PROT_WRITE, UMAP_PRIVATE, -1, 0, &store));
  ASSERT_NE(data, UMAP_FAILED);
  data[5] = 1;
  store.error = ENOSPC;
  EXPECT_EQ(umap_flush(), -1);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_EQ(uunmap(data, 1 << 20), -1);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_EQ(uunmap(data, 1 << 20), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST(Spillway, a_write_that_failed_is_made_when_the_store_takes_it_again) {
  ZeroStore store;
  auto* data = static_cast<char*>(
      Umap::umap_ex(nullptr, 1 << 20, PROT_READ | PROT_WRITE, UMAP_PRIVATE, -1, 0, &store));
  ASSERT_NE(data, UMAP_FAILED);
  data[5] = 1;
  store.error = ENXIO;
  EXPECT_EQ(umap_flush(), -1);
  EXPECT_EQ(errno, ENXIO);
  store.throws = true;
  EXPECT_EQ(umap_flush(), -1);
  EXPECT_EQ(errno, EIO) << "an exception";
  store.error = 0;
  EXPECT_EQ(umap_flush(), 0);
  EXPECT_EQ(uunmap(data, 1 << 20), 0);
}

// Run anew in a process of its own, since a forked child must not touch managed memory.
TEST(SpillwayDeathTest, a_read_that_fails_ends_the_program_with_a_message) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  UnreadableStore store;
  EXPECT_EXIT(
      {
        auto* data = static_cast<volatile char*>(
            Umap::umap_ex(nullptr, 1 << 20, PROT_READ, UMAP_PRIVATE, -1, 0, &store));
        std::exit(data == UMAP_FAILED ? 1 : data[5]);
      },
      ::testing::ExitedWithCode(74), "spillway: .*No such device or address");
}

}  // namespace
