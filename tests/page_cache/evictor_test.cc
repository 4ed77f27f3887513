#include "page_cache/evictor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/units.h"
#include "page_cache/mappings.h"

namespace spw::page_cache {
namespace {

constexpr uint64_t kFilePages = 8192, kLimitPages = 1024;

// A file whose pages begin with their numbers, on the disk and not cached.
class PageCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    if (auto pages = platform::FilePages::open(); !pages) GTEST_SKIP() << pages.status().message();
    char name[] = "page_cache_test.XXXXXX";
    fd_ = mkstemp(name);
    ASSERT_GE(fd_, 0);
    unlink(name);
    std::vector<uint64_t> page(kMmuPageBytes / sizeof(uint64_t));
    for (uint64_t i = 0; i < kFilePages; ++i) {
      page[0] = i;
      ASSERT_EQ(pwrite(fd_, page.data(), kMmuPageBytes, static_cast<off_t>(i * kMmuPageBytes)),
                kMmuPageBytes);
    }
    ASSERT_EQ(fsync(fd_), 0);
    posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
    lost_ = 0;
    auto made =
        Mappings::create([this](const Use&) { return limit_.load(); }, [](std::string_view) { ++lost_; });
    ASSERT_TRUE(made) << made.status().message();
    mappings_ = std::move(*made);
  }
  void TearDown() override {
    mappings_.reset();
    if (fd_ >= 0) close(fd_);
  }

  const uint64_t* map() {
    void* mapped = mappings_->map(nullptr, kFilePages * kMmuPageBytes, PROT_READ, MAP_SHARED, fd_, 0);
    EXPECT_NE(mapped, nullptr);
    return static_cast<const uint64_t*>(mapped);
  }
  static uint64_t number_in(const uint64_t* pages, uint64_t page) {
    return *const_cast<const volatile uint64_t*>(pages + page * (kMmuPageBytes / sizeof(uint64_t)));
  }
  // Pages that do not hold their numbers.
  static uint64_t wrong(const uint64_t* pages, uint64_t step = 1) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < kFilePages; i += step) count += number_in(pages, i) != i;
    return count;
  }
  static bool happens(const std::function<bool()>& what) {
    for (int i = 0; i < 500; ++i) {
      if (what()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  uint64_t cached_pages() const {
    void* all = mmap(nullptr, kFilePages * kMmuPageBytes, PROT_READ, MAP_SHARED, fd_, 0);
    std::vector<unsigned char> resident(kFilePages);
    EXPECT_EQ(mincore(all, kFilePages * kMmuPageBytes, resident.data()), 0);
    munmap(all, kFilePages * kMmuPageBytes);
    uint64_t count = 0;
    for (const unsigned char is : resident) count += is & 1;
    return count;
  }

  int fd_ = -1;
  std::atomic<uint64_t> limit_{kLimitPages};
  static inline std::atomic<int> lost_{0};
  std::unique_ptr<Mappings> mappings_;
};

TEST_F(PageCacheTest, what_is_read_is_right_and_what_is_cached_comes_down_to_the_limit) {
  const uint64_t* pages = map();
  for (int round = 0; round < 3; ++round) EXPECT_EQ(wrong(pages), 0u);
  // All that is too much, if no more: on a busy machine the evictor may come when the last round is over.
  EXPECT_TRUE(happens([&] { return mappings_->evictor().use().total() <= kLimitPages; }));
  EXPECT_GE(mappings_->evictor().use().dropped, kFilePages - kLimitPages);
  // Some were read ahead and not used; and what the kernel read in one piece (a large folio) is cached whole as long as
  // a part of it is mapped, which may be half of it.
  EXPECT_TRUE(happens([&] { return cached_pages() <= 2 * kLimitPages; })) << cached_pages();
  EXPECT_EQ(lost_, 0);
}

TEST_F(PageCacheTest, everything_stays_where_it_fits) {
  limit_ = 2 * kFilePages;
  const uint64_t* pages = map();
  EXPECT_EQ(wrong(pages), 0u);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // nothing may happen meanwhile
  EXPECT_EQ(mappings_->evictor().use().dropped, 0u);
  EXPECT_GE(cached_pages(), kFilePages);
}

TEST_F(PageCacheTest, a_lower_limit_evicts_though_nothing_is_touched) {
  limit_ = 2 * kFilePages;
  const uint64_t* pages = map();
  EXPECT_EQ(wrong(pages), 0u);
  limit_ = kLimitPages;
  EXPECT_TRUE(happens([&] { return mappings_->evictor().use().total() <= kLimitPages; }));
  EXPECT_TRUE(happens([&] { return cached_pages() <= kLimitPages + kLimitPages / 4; })) << cached_pages();
}

// What is touched all the time is found by the back hand every time.
TEST_F(PageCacheTest, pages_in_use_are_not_read_again) {
  const uint64_t* pages = map();
  constexpr uint64_t kHot = 64;
  uint64_t seed = 88172645463325252u, wrong_pages = 0;
  const auto touch_hot = [&] {
    for (uint64_t i = 0; i < kHot; ++i) wrong_pages += number_in(pages, i * 16) != i * 16;
  };
  uint64_t not_cached = 0, looks = 0;
  for (uint64_t i = 0; i < 60'000; ++i) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    wrong_pages += number_in(pages, seed % kFilePages) != seed % kFilePages;
    if (i % 32 == 0) touch_hot();
    if (i % 4096 != 4095) continue;
    touch_hot();
    unsigned char resident = 0;
    for (uint64_t h = 0; h < kHot; ++h, ++looks) {
      mincore(const_cast<uint64_t*>(pages + h * 16 * (kMmuPageBytes / 8)), kMmuPageBytes, &resident);
      not_cached += (resident & 1) == 0;
    }
  }
  EXPECT_EQ(wrong_pages, 0u);
  // One of eight pages fits. An evictor that got no processor for a
  // while catches up by rounds in which nothing is touched.
  EXPECT_LT(not_cached, looks / 4) << "of " << looks;
  EXPECT_GT(mappings_->evictor().use().dropped, kFilePages);
}

TEST_F(PageCacheTest, threads_that_read_map_and_unmap_never_see_a_wrong_page) {
  const uint64_t* shared = map();
  std::atomic<uint64_t> wrong_pages{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (unsigned round = 0; round < 8; ++round) {
        if (t % 2 == 0) {
          wrong_pages += wrong(shared, 2 + t);
          continue;
        }
        const uint64_t* own = map();
        wrong_pages += wrong(own, 3);
        (void)mappings_->release(own, kFilePages * kMmuPageBytes);
        munmap(const_cast<uint64_t*>(own), kFilePages * kMmuPageBytes);
        // Somebody else's memory may stand at the same place now.
        std::vector<uint64_t> other(kFilePages * kMmuPageBytes / sizeof(uint64_t) / 8, round + 1);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        for (const uint64_t word : other) wrong_pages += word != round + 1;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong_pages, 0u);
  EXPECT_EQ(lost_, 0);
}

TEST_F(PageCacheTest, what_is_locked_in_memory_is_named_and_left_alone) {
  const uint64_t* pages = map();
  // Sanitizers have an mlock() of their own, which does nothing.
  if (syscall(SYS_mlock, pages, 16 * kMmuPageBytes) != 0)
    GTEST_SKIP() << "nothing may be locked in memory here";
  EXPECT_EQ(wrong(pages), 0u);
  EXPECT_TRUE(happens([&] { return lost_ > 0; }));
  EXPECT_EQ(wrong(pages), 0u);
}

TEST_F(PageCacheTest, it_stops_while_others_read) {
  const uint64_t* pages = map();
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) (void)wrong(pages);
  });
  EXPECT_TRUE(happens([&] { return mappings_->evictor().use().dropped > 0; }));
  mappings_->evictor().stop();
  const uint64_t dropped = mappings_->evictor().use().dropped;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // nothing may happen meanwhile
  EXPECT_EQ(mappings_->evictor().use().dropped, dropped);
  done = true;
  reader.join();
}

}  // namespace
}  // namespace spw::page_cache
