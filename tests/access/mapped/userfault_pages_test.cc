// Pages by userfaultfd, and the program's own access rights on top: what it may not read is copied out to be written to
// the store; only where it cannot be, it can be read while it is written, and by nobody before and after.
#include "access/mapped/userfault_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/units.h"
#include "platform/memory.h"

namespace spw::access {
namespace {

constexpr uint64_t kBlock = 2 * kMmuPageBytes;
constexpr uint64_t kBlocks = 16;

class UserFaultPagesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto faults = platform::UserFault::open(platform::FaultScope::kAll, platform::FaultDelivery::kSignal);
    if (!faults) GTEST_SKIP() << faults.status().message();
    faults_ = std::move(*faults);
    space_ = std::move(*platform::reserve_range(0, kBlocks * kBlock));
    ASSERT_EQ(::pipe(pipe_), 0);
    auto pages = UserFaultPages::create(faults_, space_.data(), kBlocks * kBlock);
    ASSERT_TRUE(pages.is_ok());
    pages_ = std::move(*pages);
    ASSERT_TRUE(pages_->begin(0).is_ok());
    for (uint64_t block = 0; block < kBlocks; ++block) {
      const std::vector<uint64_t> source(kBlock / sizeof(uint64_t), block);
      ASSERT_TRUE(
          pages_->copy(at(block), reinterpret_cast<const std::byte*>(source.data()), kBlock, true).is_ok());
    }
  }
  void TearDown() override {
    for (const int fd : pipe_)
      if (fd >= 0) ::close(fd);
  }
  std::byte* at(uint64_t block, uint64_t page = 0) const {
    return space_.data() + block * kBlock + page * kMmuPageBytes;
  }
  int protects(std::byte* begin, uint64_t bytes, int protection, const std::function<void()>& wait = [] {}) {
    return pages_->program_protects(reinterpret_cast<uintptr_t>(begin), bytes, protection, wait);
  }
  // Whether the kernel may read the page, and finds what was put there.
  bool can_read(uint64_t block, uint64_t page = 0) {
    uint64_t word = 0;
    if (::write(pipe_[1], at(block, page), sizeof word) != sizeof word) {
      EXPECT_EQ(errno, EFAULT);
      return false;
    }
    EXPECT_EQ(::read(pipe_[0], &word, sizeof word), static_cast<ssize_t>(sizeof word));
    EXPECT_EQ(word, block);
    return true;
  }

  platform::UserFault faults_;
  platform::Mapping space_;
  std::unique_ptr<PlacedPages> pages_;
  int pipe_[2] = {-1, -1};
};

TEST_F(UserFaultPagesTest, a_guard_page_is_copied_out_and_is_one_meanwhile) {
  ASSERT_EQ(protects(at(1), kMmuPageBytes, PROT_NONE), 0);
  ASSERT_EQ(protects(at(2, 1), kMmuPageBytes, PROT_WRITE), 0);
  for (const uint64_t block : {1, 2}) {
    EXPECT_FALSE(pages_->is_readable(at(block), kBlock));
    ASSERT_TRUE(pages_->begin_writeback(at(block), kBlock).is_ok());
    std::vector<uint64_t> copied(kBlock / sizeof(uint64_t), 99);
    ASSERT_TRUE(pages_->copy_out(reinterpret_cast<std::byte*>(copied.data()), at(block), kBlock).is_ok());
    EXPECT_EQ(copied, std::vector<uint64_t>(kBlock / sizeof(uint64_t), block));
    if (block == 1) EXPECT_FALSE(can_read(1));
    pages_->end_writeback(at(block), kBlock);
  }
  EXPECT_FALSE(can_read(1));
  EXPECT_TRUE(can_read(1, 1));
  EXPECT_TRUE(pages_->is_readable(at(0), kBlock));
}

TEST_F(UserFaultPagesTest, a_guard_page_that_has_to_be_read_in_place_is_one_again_afterwards) {
  ASSERT_EQ(protects(at(1), kMmuPageBytes, PROT_NONE), 0);
  EXPECT_FALSE(can_read(1));
  EXPECT_TRUE(can_read(1, 1));
  ASSERT_TRUE(pages_->begin_writeback(at(0), 3 * kBlock).is_ok());
  EXPECT_FALSE(can_read(1));
  ASSERT_TRUE(pages_->let_read(at(0), 3 * kBlock).is_ok());
  EXPECT_TRUE(can_read(1));
  pages_->end_writeback(at(0), kBlock);
  EXPECT_TRUE(can_read(1)) << "only its neighbour has been written";
  pages_->end_writeback(at(1), kBlock);
  EXPECT_FALSE(can_read(1));
  pages_->end_writeback(at(2), kBlock);
  EXPECT_TRUE(can_read(0));
  EXPECT_TRUE(can_read(2));
}

TEST_F(UserFaultPagesTest, a_page_that_becomes_a_guard_while_it_is_written_is_one_afterwards) {
  ASSERT_EQ(protects(at(15), kMmuPageBytes, PROT_READ), 0);  // so that writes look for rights
  ASSERT_TRUE(pages_->is_readable(at(4), 2 * kBlock));
  ASSERT_TRUE(pages_->begin_writeback(at(4), 2 * kBlock).is_ok());
  ASSERT_EQ(protects(at(4, 1), 2 * kMmuPageBytes, PROT_NONE,
                     [&] {
                       EXPECT_TRUE(can_read(4, 1));
                       EXPECT_TRUE(can_read(5));
                       pages_->end_writeback(at(5), kBlock);
                       EXPECT_TRUE(can_read(4, 1));
                       pages_->end_writeback(at(4), kBlock);
                     }),
            0);
  EXPECT_TRUE(can_read(4));
  EXPECT_FALSE(can_read(4, 1));
  EXPECT_FALSE(can_read(5));
  EXPECT_TRUE(can_read(5, 1));
}

TEST_F(UserFaultPagesTest, a_write_that_began_before_there_were_rights_is_waited_for) {
  ASSERT_TRUE(pages_->begin_writeback(at(7), kBlock).is_ok());
  bool has_waited = false;
  ASSERT_EQ(protects(at(7), kBlock, PROT_NONE,
                     [&] {
                       EXPECT_TRUE(can_read(7));
                       pages_->end_writeback(at(7), kBlock);
                       // And another one begins, which knows.
                       EXPECT_FALSE(pages_->is_readable(at(7), kBlock));
                       EXPECT_TRUE(pages_->begin_writeback(at(7), kBlock).is_ok());
                       EXPECT_TRUE(pages_->let_read(at(7), kBlock).is_ok());
                       has_waited = true;
                     }),
            0);
  EXPECT_TRUE(has_waited);
  EXPECT_TRUE(can_read(7));
  pages_->end_writeback(at(7), kBlock);
  EXPECT_FALSE(can_read(7));
}

TEST_F(UserFaultPagesTest, of_two_that_wait_for_a_write_the_last_takes_the_right_away) {
  ASSERT_TRUE(pages_->is_readable(at(7), kBlock));
  ASSERT_TRUE(pages_->begin_writeback(at(7), kBlock).is_ok());
  const auto another_waits = [&] {
    ASSERT_EQ(protects(at(7), kMmuPageBytes, PROT_NONE, [&] { EXPECT_TRUE(can_read(7)); }), 0);
    EXPECT_TRUE(can_read(7)) << "the first has not seen the write end";
    // Given back and taken again, with a write in between that knows nothing.
    ASSERT_EQ(protects(at(7), kMmuPageBytes, PROT_READ | PROT_WRITE), 0);
    ASSERT_EQ(protects(at(7), 2 * kMmuPageBytes, PROT_NONE, [&] { EXPECT_TRUE(can_read(7, 1)); }), 0);
    EXPECT_TRUE(can_read(7, 1));
  };
  ASSERT_EQ(protects(at(7), kBlock, PROT_NONE, [&] { another_waits(); }), 0);
  EXPECT_FALSE(can_read(7));
  EXPECT_FALSE(can_read(7, 1));
  pages_->end_writeback(at(7), kBlock);
}

TEST_F(UserFaultPagesTest, a_guard_page_is_one_all_the_while_its_neighbours_become_guards) {
  ASSERT_EQ(protects(at(1), kMmuPageBytes, PROT_NONE), 0);
  bool has_waited = false;
  ASSERT_EQ(protects(at(0), 4 * kBlock, PROT_NONE,
                     [&] {
                       EXPECT_FALSE(can_read(1));
                       EXPECT_TRUE(can_read(2)) << "it may be being written";
                       has_waited = true;
                     }),
            0);
  EXPECT_TRUE(has_waited);
  EXPECT_FALSE(can_read(2));
}

TEST_F(UserFaultPagesTest, what_is_mapped_anew_has_the_rights_that_the_program_chose) {
  ASSERT_EQ(protects(at(6), kMmuPageBytes, PROT_READ), 0);
  ASSERT_EQ(protects(at(7), kMmuPageBytes, PROT_NONE), 0);
  EXPECT_TRUE(pages_->program_allows(reinterpret_cast<uintptr_t>(at(6)), false));
  EXPECT_FALSE(pages_->program_allows(reinterpret_cast<uintptr_t>(at(6)), true));
  EXPECT_FALSE(pages_->program_allows(reinterpret_cast<uintptr_t>(at(7)), false));
  ASSERT_TRUE(platform::protect(at(6), 2 * kBlock, platform::Protection::kReadWrite).is_ok());
  ASSERT_TRUE(pages_->renew(at(6), 2 * kBlock).is_ok());
  EXPECT_TRUE(can_read(6));
  EXPECT_FALSE(can_read(7));
  const uint64_t word = 0;
  ASSERT_EQ(::write(pipe_[1], &word, sizeof word), static_cast<ssize_t>(sizeof word));
  EXPECT_EQ(::read(pipe_[0], at(6), sizeof word), -1);
  EXPECT_EQ(errno, EFAULT);
}

TEST_F(UserFaultPagesTest, rights_that_are_all_given_back_hold_nothing) {
  ASSERT_EQ(protects(at(2), kBlock, PROT_NONE), 0);
  ASSERT_TRUE(pages_->begin_writeback(at(2), kBlock).is_ok());
  ASSERT_TRUE(pages_->let_read(at(2), kBlock).is_ok());
  ASSERT_EQ(protects(at(2), kBlock, PROT_READ | PROT_WRITE), 0);
  pages_->end_writeback(at(2), kBlock);
  EXPECT_TRUE(can_read(2));
  ASSERT_EQ(protects(at(2), kBlock, PROT_NONE), 0);
  EXPECT_FALSE(can_read(2)) << "it is not being written any more";
  pages_->forget_rights(reinterpret_cast<uintptr_t>(at(2)), reinterpret_cast<uintptr_t>(at(3)));
  EXPECT_TRUE(can_read(2));
}

TEST_F(UserFaultPagesTest, rights_that_cannot_be_given_change_nothing) {
  EXPECT_EQ(protects(at(3), kMmuPageBytes, 1 << 20), EINVAL);
  EXPECT_EQ(protects(at(3) + 8, kMmuPageBytes, PROT_NONE), EINVAL);
  EXPECT_TRUE(can_read(3));
  ASSERT_TRUE(pages_->begin_writeback(at(3), kBlock).is_ok());
  pages_->end_writeback(at(3), kBlock);
  EXPECT_TRUE(can_read(3));
}

}  // namespace
}  // namespace spw::access
