#include "platform/userfault.h"

#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/units.h"
#include "platform/memory.h"
#include "platform/wake_fd.h"

namespace spw::platform {
namespace {

constexpr uint64_t kPages = 64;
constexpr uint64_t kBytes = kPages * kMmuPageBytes;

class UserFaultTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = UserFault::open();
    if (!opened) GTEST_SKIP() << opened.status().message();
    faults_ = std::move(*opened);
    memory_ = std::move(*map_anonymous(kBytes));
    SPW_CHECK(faults_.register_range(memory_.data(), kBytes).is_ok());
    contents_ = std::move(*map_anonymous(kBytes));
    for (uint64_t page = 0; page < kPages; ++page)
      std::memset(contents_.data() + page * kMmuPageBytes, static_cast<int>(page + 1), kMmuPageBytes);
    wake_ = std::move(*WakeFd::create());
  }

  std::byte* page(uint64_t index) { return memory_.data() + index * kMmuPageBytes; }
  void expect_contents() {
    for (uint64_t i = 0; i < kPages; ++i) {
      ASSERT_EQ(page(i)[0], static_cast<std::byte>(i + 1));
      ASSERT_EQ(page(i)[kMmuPageBytes - 1], static_cast<std::byte>(i + 1));
    }
  }
  // Pages that once had other access rights divide the range into areas of the kernel's, which stay apart.
  void divide_at(std::initializer_list<uint64_t> pages) {
    for (uint64_t index : pages) {
      ASSERT_TRUE(protect(page(index), kMmuPageBytes, Protection::kNone));
      ASSERT_TRUE(protect(page(index), kMmuPageBytes, Protection::kReadWrite));
      // Where the kernel joins them again, another difference keeps them apart.
      ASSERT_TRUE(advise(page(index), kMmuPageBytes, Advice::kDontDump));
    }
    uffdio_copy whole{reinterpret_cast<uintptr_t>(page(0)), reinterpret_cast<uintptr_t>(contents_.data()),
                      kBytes, 0, 0};
    ASSERT_NE(ioctl(faults_.fd(), UFFDIO_COPY, &whole), 0) << "not divided, so there is nothing to test";
    ASSERT_EQ(errno, ENOENT);
  }
  // Serves every fault until there was one on each page of `stored`, lifting its protection.
  void lift_protection(size_t events_wanted) {
    FaultEvent events[16];
    for (size_t seen = 0; seen < events_wanted;) {
      const size_t count = faults_.wait_events(events, wake_.fd());
      for (size_t i = 0; i < count; ++i) {
        EXPECT_TRUE(events[i].is_protected && events[i].is_store);
        EXPECT_TRUE(faults_.write_protect(reinterpret_cast<void*>(events[i].address), kMmuPageBytes, false));
      }
      seen += count;
    }
  }

  UserFault faults_;
  Mapping memory_, contents_;
  WakeFd wake_;
};

TEST_F(UserFaultTest, an_event_says_who_faulted_where_and_how) {
  std::atomic<uint32_t> thread_id{0};
  std::thread reader([&] {
    thread_id = static_cast<uint32_t>(gettid());
    const std::byte found = *static_cast<volatile std::byte*>(page(3) + 77);
    EXPECT_EQ(found, std::byte{4});
    *static_cast<volatile std::byte*>(page(5)) = std::byte{9};
  });
  FaultEvent event;
  ASSERT_EQ(faults_.wait_events({&event, 1}, wake_.fd()), 1u);
  EXPECT_EQ(event.address, reinterpret_cast<uintptr_t>(page(3)));
  EXPECT_EQ(event.thread, thread_id);
  EXPECT_FALSE(event.is_store || event.is_protected);
  ASSERT_TRUE(faults_.copy(page(3), contents_.data() + 3 * kMmuPageBytes, kMmuPageBytes, false));
  ASSERT_EQ(faults_.wait_events({&event, 1}, wake_.fd()), 1u);
  EXPECT_EQ(event.address, reinterpret_cast<uintptr_t>(page(5)));
  EXPECT_TRUE(event.is_store && !event.is_protected);
  ASSERT_TRUE(faults_.copy(page(5), contents_.data(), kMmuPageBytes, false));
  reader.join();
  EXPECT_EQ(page(5)[0], std::byte{9});
}

TEST_F(UserFaultTest, waiting_ends_when_it_is_told_to) {
  wake_.wake();
  FaultEvent event;
  EXPECT_EQ(faults_.wait_events({&event, 1}, wake_.fd()), 0u);
}

TEST_F(UserFaultTest, pages_that_are_there_are_not_copied_over) {
  ASSERT_TRUE(faults_.copy(page(0), contents_.data(), kMmuPageBytes, false));
  EXPECT_EQ(faults_.copy(page(0), contents_.data() + kMmuPageBytes, kMmuPageBytes, false).error(), EEXIST);
  EXPECT_EQ(page(0)[0], std::byte{1});
}

TEST_F(UserFaultTest, copies_run_over_areas_once_divided) {
  divide_at({1, 17, 18, 40, kPages - 1});
  ASSERT_TRUE(faults_.copy(page(0), contents_.data(), kBytes, false));
  expect_contents();
}

TEST_F(UserFaultTest, a_range_is_copied_where_every_page_is_an_area) {
  for (uint64_t i = 1; i < kPages; i += 2) divide_at({i});
  ASSERT_TRUE(faults_.copy(page(0), contents_.data(), kBytes, false));
  expect_contents();
}

// An odd number of pages, so that halves are not whole.
TEST_F(UserFaultTest, protection_runs_over_areas_once_divided) {
  divide_at({2, 20, 41});
  ASSERT_TRUE(faults_.copy(page(0), contents_.data(), kBytes, false));
  constexpr uint64_t kProtected = 47;
  ASSERT_TRUE(faults_.write_protect(page(0), kProtected * kMmuPageBytes, true));
  std::thread writer([&] {
    for (uint64_t i = 0; i < kPages; ++i)
      *static_cast<volatile std::byte*>(page(i)) = static_cast<std::byte>(i + 1);
  });
  lift_protection(kProtected);
  writer.join();
  expect_contents();
}

TEST_F(UserFaultTest, protection_of_divided_areas_is_lifted_as_a_whole) {
  divide_at({2, 20, 41});
  ASSERT_TRUE(faults_.copy(page(0), contents_.data(), kBytes, true));
  ASSERT_TRUE(faults_.write_protect(page(0), kBytes, false));
  for (uint64_t i = 0; i < kPages; ++i) page(i)[1] = std::byte{1};  // would wait for ever
}

TEST_F(UserFaultTest, an_area_that_is_not_registered_is_an_error) {
  ASSERT_TRUE(faults_.unregister_range(page(8), kMmuPageBytes));
  EXPECT_EQ(faults_.copy(page(8), contents_.data(), kMmuPageBytes, false).error(), ENOENT);
  EXPECT_EQ(faults_.write_protect(page(8), kMmuPageBytes, true).error(), ENOENT);
}

class RangeReleaserTest : public testing::Test {
 protected:
  static constexpr uint64_t kManyPages = 4096;

  void SetUp() override {
    memory_ = std::move(*map_anonymous(kManyPages * kMmuPageBytes, 2 * kMiB));
    std::memset(memory_.data(), 7, memory_.bytes());
  }
  iovec pages(uint64_t first, uint64_t count) {
    return {memory_.data() + first * kMmuPageBytes, count * kMmuPageBytes};
  }
  // Exactly those of `released` are zero, the others as they were.
  void expect_only(const std::vector<iovec>& released) {
    std::vector<bool> gone(kManyPages);
    for (const iovec& range : released) {
      const auto first = static_cast<uint64_t>(static_cast<std::byte*>(range.iov_base) - memory_.data());
      for (uint64_t at = first; at < first + range.iov_len; at += kMmuPageBytes)
        gone[at / kMmuPageBytes] = true;
    }
    for (uint64_t i = 0; i < kManyPages; ++i)
      ASSERT_EQ(memory_.data()[i * kMmuPageBytes], gone[i] ? std::byte{0} : std::byte{7}) << "page " << i;
  }
  void release_and_expect(const std::vector<iovec>& ranges) {
    for (const auto how : {RangeReleaser::Calls::kAsKernelAllows, RangeReleaser::Calls::kOneByOne}) {
      std::memset(memory_.data(), 7, memory_.bytes());
      const RangeReleaser releaser(how);
      if (how == RangeReleaser::Calls::kOneByOne) EXPECT_FALSE(releaser.is_vectored());
      releaser.release(ranges);
      expect_only(ranges);
    }
  }

  Mapping memory_;
};

TEST_F(RangeReleaserTest, releases_what_it_is_given_and_nothing_else) {
  release_and_expect({pages(1, 1), pages(7, 3), pages(100, 1), pages(50, 2)});
  release_and_expect({pages(3, 1)});
  release_and_expect({});
}

TEST_F(RangeReleaserTest, neighbours_are_released_together) {
  release_and_expect({pages(10, 1), pages(11, 2), pages(13, 1), pages(15, 1)});
}

// More than one call takes; the last of one call has a neighbour in the next.
TEST_F(RangeReleaserTest, more_ranges_than_one_call_takes) {
  std::vector<iovec> ranges;
  for (uint64_t page = 0; page < 4000; page += 3) ranges.push_back(pages(page, 1));
  ranges.insert(ranges.begin() + 512, pages(512 * 3 - 2, 1));
  release_and_expect(ranges);
  std::vector<iovec> neighbours;
  for (uint64_t page = 0; page < 2000; ++page) neighbours.push_back(pages(page, 1));
  release_and_expect(neighbours);
}

// A part that the kernel does not take in one call is released by itself.
TEST_F(RangeReleaserTest, divided_areas_are_released_too) {
  for (uint64_t page = 100; page < 200; page += 10)
    ASSERT_TRUE(advise(memory_.data() + page * kMmuPageBytes, kMmuPageBytes, Advice::kDontDump));
  release_and_expect({pages(90, 60), pages(155, 100)});
}

}  // namespace
}  // namespace spw::platform
