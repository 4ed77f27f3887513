#include "platform/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace spw::platform {
namespace {

std::string scratch_directory() {
  const char* named = std::getenv("SPW_TEST_DIR");
  std::string path = (named ? std::string(named) : ::testing::TempDir()) + "/spw_file_test.XXXXXX";
  return ::mkdtemp(path.data()) ? path : "";
}

class SpillFile : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override { directory_ = scratch_directory(); }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string directory_;
};

TEST_P(SpillFile, has_no_name_and_is_its_owners_alone) {
  auto file = open_spill_file(directory_, GetParam());
  ASSERT_TRUE(file) << file.status().message();
  struct stat info{};
  ASSERT_EQ(::fstat(file->fd(), &info), 0);
  EXPECT_EQ(info.st_nlink, 0u);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_P(SpillFile, in_a_missing_directory_is_an_error_that_names_it) {
  auto file = open_spill_file(directory_ + "/missing", GetParam());
  ASSERT_FALSE(file);
  EXPECT_EQ(file.status().error(), ENOENT);
  EXPECT_NE(file.status().message().find(directory_ + "/missing"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(BothWays, SpillFile, ::testing::Bool(),
                         [](const auto& way) { return way.param ? "made_and_unlinked" : "tmpfile"; });

// Between the creation of its file and the removal of its name.
TEST(SpillFileKilled, leaves_nothing_that_the_next_one_does_not_remove) {
  constexpr int kKillsMax = 3000;
  constexpr useconds_t kLifeUsMin = 200, kLifeUsSpread = 97;
  const std::string directory = scratch_directory();
  std::filesystem::create_directory(directory + "/.spillway-spill-folder");
  const std::string mine = directory + "/.spillway-spill-full";
  {
    File full(::open(mine.c_str(), O_CREAT | O_RDWR, 0600));
    ASSERT_EQ(::write(full.fd(), "x", 1), 1);
  }
  const auto names = [&] {
    return std::distance(std::filesystem::directory_iterator(directory),
                         std::filesystem::directory_iterator());
  };
  int left_behind = 0;
  for (int kill = 0; kill < kKillsMax && left_behind < 3; ++kill) {
    const pid_t child = ::fork();
    if (child == 0)
      for (;;) (void)open_spill_file(directory, true).status().is_ok();
    ::usleep(kLifeUsMin + static_cast<useconds_t>(kill) % kLifeUsSpread);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    if (names() == 2) continue;
    ++left_behind;
    auto next = open_spill_file(directory, true);
    ASSERT_TRUE(next) << next.status().message();
    EXPECT_EQ(names(), 2) << "what was left behind is there still, or what has nothing to do with it is gone";
  }
  EXPECT_GT(left_behind, 0) << "no kill met the moment that this is about";
  std::filesystem::remove_all(directory);
}

TEST(SpillFileRaces, of_many_at_a_time_none_fails) {
  constexpr int kChildren = 4, kFiles = 300;
  const std::string directory = scratch_directory();
  for (int i = 0; i < kChildren; ++i) {
    if (::fork() != 0) continue;
    bool all = true;
    for (int file = 0; file < kFiles; ++file) all = all && open_spill_file(directory, true);
    ::_exit(all ? 0 : 1);
  }
  for (int i = 0, status = 0; i < kChildren; ++i) {
    ASSERT_GT(::wait(&status), 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  std::filesystem::remove_all(directory);
}

TEST(File, knows_its_filesystem) {
  auto proc = open_file("/proc/self/status", O_RDONLY);
  ASSERT_TRUE(proc);
  EXPECT_EQ(filesystem_type(*proc), "proc");
}

TEST(File, space_can_be_allocated_punched_and_counted) {
  std::string directory = scratch_directory();
  auto file = open_spill_file(directory);
  ASSERT_TRUE(file);
  ASSERT_TRUE(set_file_size(*file, 1 << 20));
  struct stat info{};
  ASSERT_TRUE(allocate_space(*file, 0, 1 << 20));
  ASSERT_EQ(::fstat(file->fd(), &info), 0);
  EXPECT_GE(info.st_blocks * 512, 1 << 20);
  EXPECT_EQ(punch_hole(file->fd(), 0, 1 << 20), 0);
  ASSERT_EQ(::fstat(file->fd(), &info), 0);
  EXPECT_LT(info.st_blocks * 512, 1 << 20);
  auto size = file_size(*file);
  ASSERT_TRUE(size);
  EXPECT_EQ(*size, 1u << 20);
  auto free_bytes = filesystem_free(*file);
  ASSERT_TRUE(free_bytes);
  EXPECT_GT(*free_bytes, 0u);
  std::filesystem::remove_all(directory);
}

TEST(File, reopened_keeps_its_access_mode_and_its_contents) {
  std::string directory = scratch_directory();
  std::string path = directory + "/data";
  int fd = ::open(path.c_str(), O_CREAT | O_RDWR, 0600);
  ASSERT_EQ(::write(fd, "abcd", 4), 4);
  ::close(fd);
  auto file = open_file(path, O_RDONLY);
  ASSERT_TRUE(file);
  std::filesystem::remove(path);
  auto again = reopen_file(file->fd(), Direct::kNo);
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->direct);
  char text[5] = {};
  iovec segment{text, 4};
  EXPECT_EQ(read_at(again->file.fd(), &segment, 1, 0), 4);
  EXPECT_STREQ(text, "abcd");
  EXPECT_EQ(write_at(again->file.fd(), &segment, 1, 0), -EBADF);
  std::filesystem::remove_all(directory);
}

TEST(File, a_directory_or_a_pipe_has_no_size_for_a_store) {
  auto directory = open_file("/", O_RDONLY);
  ASSERT_TRUE(directory);
  EXPECT_EQ(file_size(*directory).status().error(), EISDIR);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  File reader(ends[0]), writer(ends[1]);
  EXPECT_EQ(file_size(reader).status().error(), ENOTSUP);
}

// Where it is said once that times are a change's own, no change goes without one; and nobody says so of old times.
TEST(File, equal_stamps_have_no_change_between_them_where_times_are_a_changes_own) {
  char path[] = "/var/tmp/spw_times_XXXXXX";
  const int fd = ::mkstemp(path);
  ASSERT_GE(fd, 0);
  ::unlink(path);
  bool are_own = false;
  int same = 0;
  auto before = file_stamp(fd);
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(::fchmod(fd, i % 2 == 0 ? 0600 : 0640), 0);
    auto after = file_stamp(fd);
    ASSERT_TRUE(before && after);
    are_own |= shows_times_of_their_own(fd, *after);
    same += *before == *after;
    before = after;
  }
  if (are_own) EXPECT_EQ(same, 0);
  FileStamp old = *before;
  old.changed_ns -= 1'000'000'000;
  EXPECT_FALSE(shows_times_of_their_own(fd, old));
  old.changed_ns += 2'000'000'000;  // by a clock that was set back
  EXPECT_FALSE(shows_times_of_their_own(fd, old));
  ::close(fd);
  if (!are_own) GTEST_SKIP() << "times of files are as coarse as the clock's ticks here";
}

}  // namespace
}  // namespace spw::platform
