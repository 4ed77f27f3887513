#include "platform/device_use.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace spw::platform {
namespace {

std::string name_of_this_test() { return "device_use_test of process " + std::to_string(::getpid()); }

TEST(ClaimName, is_had_once_at_a_time) {
  const std::string name = name_of_this_test();
  {
    auto first = claim_name(name);
    ASSERT_TRUE(first) << first.status().message();
    auto second = claim_name(name);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.status().error(), EBUSY);
    EXPECT_EQ(second.status().message(), "this process has it as its store already");
    EXPECT_TRUE(claim_name(name + " and another"));
  }
  EXPECT_TRUE(claim_name(name)) << "nobody has it any more";
}

TEST(ClaimName, ends_with_its_process_however_that_ends) {
  const std::string name = name_of_this_test();
  int made[2];
  ASSERT_EQ(::pipe(made), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto claim = claim_name(name);
    [[maybe_unused]] auto written = ::write(made[1], claim ? "y" : "n", 1);
    for (;;) ::pause();
  }
  char is_made = 0;
  ASSERT_EQ(::read(made[0], &is_made, 1), 1);
  ASSERT_EQ(is_made, 'y');
  // More often than refused ones may wait.
  for (int i = 0; i < 5; ++i) {
    auto refused = claim_name(name);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.status().message().find("process " + std::to_string(child) + " (device_use_test)"), 0u)
        << refused.status().message();
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(claim_name(name));
  for (const int fd : made) ::close(fd);
}

TEST(DeviceUse, files_and_directories_are_no_devices) {
  EXPECT_FALSE(is_block_device("/"));
  EXPECT_FALSE(is_block_device("/dev/null"));
  EXPECT_FALSE(is_block_device("/nowhere"));
  EXPECT_EQ(device_user("/dev/null"), "");
}

}  // namespace
}  // namespace spw::platform
