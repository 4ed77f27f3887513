#include "access/mapped/kernel_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "base/units.h"
#include "platform/memory.h"

namespace spw::access {
namespace {

constexpr uint64_t kBytes = 64 * kMmuPageBytes;

class KernelFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "kernel_files_XXXXXX";
    file_ = platform::File(::mkstemp(path.data()));
    ASSERT_TRUE(file_.is_open());
    ::unlink(path.c_str());
    ASSERT_TRUE(platform::set_file_size(file_, kBytes));
    space_ = std::move(*platform::map_anonymous(2 * kBytes));
    ASSERT_TRUE(platform::protect(space_.data(), 2 * kBytes, platform::Protection::kNone));
  }
  std::byte in_file(uint64_t offset) const {
    std::byte byte{};
    EXPECT_EQ(::pread(file_.fd(), &byte, 1, static_cast<off_t>(offset)), 1);
    return byte;
  }
  // As a system call finds it, which no signal follows.
  bool is_accessible(uint64_t offset) const { return ::access(text(offset), F_OK) == 0 || errno != EFAULT; }
  const char* text(uint64_t offset) const { return reinterpret_cast<const char*>(space_.data() + offset); }

  platform::File file_;
  platform::Mapping space_;
  KernelFiles files_;
};

TEST_F(KernelFilesTest, what_is_stored_is_in_the_file_at_once) {
  ASSERT_TRUE(files_.map(space_.data(), kBytes / 2, file_, kBytes / 2));
  space_.data()[kMmuPageBytes] = std::byte{7};
  EXPECT_EQ(in_file(kBytes / 2 + kMmuPageBytes), std::byte{7});
  EXPECT_TRUE(files_.sync(space_.data(), 2 * kBytes));
  EXPECT_FALSE(is_accessible(kBytes));
}

TEST_F(KernelFilesTest, a_part_is_unmapped_and_the_rest_goes_on) {
  ASSERT_TRUE(files_.map(space_.data(), kBytes, file_, 0));
  std::memset(space_.data(), 5, kBytes);
  const auto was_file = files_.unmap(space_.data() + 8 * kMmuPageBytes, 4 * kMmuPageBytes);
  ASSERT_TRUE(was_file);
  EXPECT_TRUE(*was_file);
  EXPECT_TRUE(is_accessible(7 * kMmuPageBytes));
  EXPECT_FALSE(is_accessible(8 * kMmuPageBytes));
  EXPECT_FALSE(is_accessible(11 * kMmuPageBytes));
  EXPECT_TRUE(is_accessible(12 * kMmuPageBytes));
  EXPECT_FALSE(*files_.unmap(space_.data() + 8 * kMmuPageBytes, 4 * kMmuPageBytes));
  EXPECT_EQ(files_.ranges().size(), 2u);
  EXPECT_TRUE(files_.sync(space_.data(), kBytes));
  EXPECT_EQ(in_file(9 * kMmuPageBytes), std::byte{5});
}

TEST_F(KernelFilesTest, nothing_is_accessible_after_the_end_and_the_file_has_it_all) {
  ASSERT_TRUE(files_.map(space_.data(), kBytes, file_, 0));
  std::memset(space_.data(), 6, kBytes);
  ASSERT_TRUE(files_.end());
  EXPECT_TRUE(files_.ranges().empty());
  for (uint64_t at = 0; at < kBytes; at += kMmuPageBytes) {
    EXPECT_FALSE(is_accessible(at));
    EXPECT_EQ(in_file(at), std::byte{6});
  }
}

TEST_F(KernelFilesTest, a_file_that_cannot_be_mapped_leaves_what_was_there) {
  const platform::File only_read = std::move(*platform::open_file("/proc/self/exe", O_RDONLY));
  EXPECT_EQ(files_.map(space_.data(), kMmuPageBytes, only_read, 0).error(), EACCES);
  EXPECT_TRUE(files_.ranges().empty());
  EXPECT_FALSE(is_accessible(0));
}

TEST_F(KernelFilesTest, threads_map_and_unmap_while_others_sync) {
  std::thread one([&] {
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(files_.map(space_.data(), kBytes, file_, 0));
      space_.data()[0] = std::byte{1};
      ASSERT_TRUE(*files_.unmap(space_.data(), kBytes));
    }
  });
  std::thread other([&] {
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(files_.map(space_.data() + kBytes, kBytes, file_, 0));
      ASSERT_TRUE(files_.sync(space_.data() + kBytes, kBytes));
      ASSERT_GE(files_.ranges().size(), 1u);
      ASSERT_TRUE(*files_.unmap(space_.data() + kBytes, kBytes));
    }
  });
  one.join();
  other.join();
  EXPECT_TRUE(files_.ranges().empty());
}

}  // namespace
}  // namespace spw::access
