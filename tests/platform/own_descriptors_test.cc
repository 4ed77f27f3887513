#include "platform/own_descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "platform/file.h"

namespace spw::platform {
namespace {

constexpr int kProgramsMax = 48;

// In a process of its own: once they are kept, they are for good.
template <class Body>
void in_a_child(Body body) {
  EXPECT_EXIT(
      {
        body();
        _exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }
int open_null(int flags = 0) { return open("/dev/null", O_RDWR | flags); }

TEST(OwnDescriptors, none_is_known_before_they_are_kept) {
  const int fd = open_null();
  const File file(fd);
  EXPECT_EQ(file.fd(), fd);
  EXPECT_FALSE(is_own_descriptor(fd));
  EXPECT_EQ(next_own_descriptor(0), -1);
}

TEST(OwnDescriptors, a_file_leaves_its_number_to_the_program) {
  in_a_child([] {
    keep_own_descriptors();
    const int number = open_null(O_CLOEXEC);
    int high = -1;
    {
      errno = 33;
      const File file(number);
      EXPECT_EQ(errno, 33);
      high = file.fd();
      EXPECT_GT(high, kProgramsMax);
      EXPECT_TRUE(is_own_descriptor(high));
      EXPECT_EQ(next_own_descriptor(0), high);
      EXPECT_EQ(next_own_descriptor(static_cast<unsigned>(high)), high);
      EXPECT_EQ(next_own_descriptor(static_cast<unsigned>(high) + 1), -1);
      EXPECT_EQ(fcntl(high, F_GETFD), FD_CLOEXEC);
      EXPECT_EQ(open_null(), number);
      const File other(number);
      EXPECT_EQ(fcntl(other.fd(), F_GETFD), 0) << "it was to outlive exec";
      EXPECT_EQ(next_own_descriptor(static_cast<unsigned>(high) + 1), other.fd());
    }
    EXPECT_FALSE(is_own_descriptor(high));
    EXPECT_FALSE(is_open(high));
  });
}

TEST(OwnDescriptors, where_no_more_fit_they_stay_and_are_known) {
  in_a_child([] {
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 64;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    keep_own_descriptors();
    File files[20];
    int low = 0;
    for (File& file : files) {
      file = File(open_null());
      EXPECT_TRUE(is_own_descriptor(file.fd()));
      low += file.fd() < kProgramsMax;
    }
    EXPECT_EQ(low, 4);
  });
}

TEST(OwnDescriptors, no_file_is_none) {
  in_a_child([] {
    keep_own_descriptors();
    EXPECT_FALSE(File(-1).is_open());
    EXPECT_FALSE(is_own_descriptor(-1));
    EXPECT_FALSE(is_own_descriptor(kOwnDescriptorsMax));
  });
}

}  // namespace
}  // namespace spw::platform
