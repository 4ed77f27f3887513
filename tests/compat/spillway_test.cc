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
    errno = error;
    return -1;
  }
  int error = 0;
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

}  // namespace
