#include "platform/opens_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace spw::platform {
namespace {

class OpensWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    fd_ = mkstemp(name_);
    ASSERT_GE(fd_, 0);
    auto watch = OpensWatch::create();
    if (!watch) GTEST_SKIP() << watch.status().message();
    watch_ = std::move(*watch);
    if (Status status = watch_->add(fd_, 7); !status) GTEST_SKIP() << status.message();
  }
  void TearDown() override {
    close(fd_);
    unlink(name_);
  }
  // By another process.
  void open_elsewhere() const {
    const pid_t child = fork();
    if (child == 0) _exit(open(name_, O_RDONLY) >= 0 ? 0 : 1);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }

  char name_[32] = "opens_watch_test.XXXXXX";
  int fd_ = -1;
  std::unique_ptr<OpensWatch> watch_;
};

TEST_F(OpensWatchTest, what_another_process_opens_is_told_once) {
  open_elsewhere();
  EXPECT_EQ(watch_->take_opened(), std::set<uint64_t>{7});
  EXPECT_TRUE(watch_->take_opened().empty());
}

TEST_F(OpensWatchTest, what_the_process_itself_opens_is_not_told) {
  const int again = open(name_, O_RDWR);
  EXPECT_TRUE(watch_->take_opened().empty());
  close(again);
}

// The kernel tells of both in one event or in two.
TEST_F(OpensWatchTest, an_open_of_another_process_is_not_hidden_by_ones_own) {
  close(open(name_, O_RDWR));
  open_elsewhere();
  close(open(name_, O_RDWR));
  EXPECT_EQ(watch_->take_opened(), std::set<uint64_t>{7});
}

TEST_F(OpensWatchTest, nothing_is_told_of_a_file_that_was_removed) {
  watch_->remove(fd_, 7);
  open_elsewhere();
  EXPECT_TRUE(watch_->take_opened().empty());
}

TEST_F(OpensWatchTest, files_keep_apart) {
  char name[] = "opens_watch_test.XXXXXX";
  const int other = mkstemp(name);
  ASSERT_GE(other, 0);
  unlink(name);
  ASSERT_TRUE(watch_->add(other, 8));
  open_elsewhere();
  EXPECT_EQ(watch_->take_opened(), std::set<uint64_t>{7});
  close(other);
}

TEST(OpenersTest, one_open_description_is_alone_and_two_are_not) {
  char name[] = "openers_test.XXXXXX";
  const int fd = mkstemp(name);
  ASSERT_GE(fd, 0);
  const int same = dup(fd);
  const Openers alone = openers_of(fd);
  const int other = open(name, O_RDONLY);
  const Openers two = openers_of(fd);
  unlink(name);
  EXPECT_EQ(own_descriptors_of(fd), 3u);
  close(other);
  close(same);
  if (alone == Openers::kUnknown) GTEST_SKIP() << "this filesystem knows no leases";
  EXPECT_EQ(alone, Openers::kThisAlone);
  EXPECT_EQ(two, Openers::kOthers);
  EXPECT_EQ(own_descriptors_of(fd), 1u);
  EXPECT_EQ(openers_of(fd), Openers::kThisAlone);
  EXPECT_EQ(fcntl(fd, F_GETSIG), 0);
  EXPECT_EQ(fcntl(fd, F_GETOWN), 0);
  EXPECT_EQ(fcntl(fd, F_GETLEASE), F_UNLCK);
  close(fd);
}

}  // namespace
}  // namespace spw::platform
