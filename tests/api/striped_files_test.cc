// What only striped files do: where their bytes lie, how they are opened, and what is refused.
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "file_kit.h"

namespace spw::testing {
namespace {

constexpr size_t kChunk = 64 << 10;

class StripedFiles : public ::testing::Test, public FileKit {
 protected:
  StripedFiles() : FileKit({3, kChunk}) {}
  static void expect_refused(const std::string& name, int error, const std::string& because,
                             int flags = O_RDWR) {
    const int fd = spw_open(name.c_str(), flags, 0600);
    EXPECT_EQ(fd, -error) << name;
    EXPECT_NE(std::string(spw_error_message()).find(because), std::string::npos) << spw_error_message();
    if (fd >= 0) EXPECT_EQ(spw_close(fd), 0);
  }
  std::string in_order(const std::string& chunk, std::vector<size_t> members) const {
    std::string name = "striped:chunk=" + chunk;
    for (const size_t member : members) name += "," + path(member);
    return name;
  }
};

TEST_F(StripedFiles, chunks_lie_on_the_members_in_turn) {
  const int fd = open();
  ASSERT_GE(fd, 0) << spw_error_message();
  struct stat info, first;
  ASSERT_EQ(::fstat(fd, &info), 0);
  ASSERT_EQ(::stat(path(0).c_str(), &first), 0);
  EXPECT_EQ(info.st_ino, first.st_ino) << "the descriptor is the first member's";
  for (size_t i = 0; i < 5; ++i)
    expect_write(fd, i * kChunk, std::string(kChunk, static_cast<char>('a' + i)));
  expect_write(fd, 5 * kChunk, "end");
  EXPECT_EQ(spw_fsync(fd), 0) << spw_error_message();
  const std::string a(kChunk, 'a'), b(kChunk, 'b'), c(kChunk, 'c'), d(kChunk, 'd'), e(kChunk, 'e');
  EXPECT_TRUE(text_of(path(0)) == a + d);
  EXPECT_TRUE(text_of(path(1)) == b + e);
  EXPECT_TRUE(text_of(path(2)) == c + "end");
  ASSERT_EQ(spw_ftruncate(fd, kChunk + 10), 0) << spw_error_message();
  EXPECT_TRUE(text_of(path(0)) == a);
  EXPECT_TRUE(text_of(path(1)) == b.substr(0, 10));
  EXPECT_EQ(text_of(path(2)), "");
  EXPECT_EQ(spw_close(fd), 0);
}

TEST_F(StripedFiles, without_a_chunk_it_is_of_512_kib) {
  const std::string name = "striped:file:" + path(0) + "," + directory() + "/a%2Cb";
  const int fd = spw_open(name.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(fd, 0) << spw_error_message();
  expect_write(fd, 0, std::string((512 << 10) + 1, 'x'));
  EXPECT_EQ(spw_close(fd), 0);
  EXPECT_EQ(text_of(path(0)).size(), 512 << 10);
  EXPECT_EQ(text_of(directory() + "/a,b"), "x");
}

TEST_F(StripedFiles, descriptors_of_one_file_share_it_and_its_members_are_not_opened_otherwise) {
  const int fd = open(), again = open(O_RDONLY);
  ASSERT_GE(again, 0) << spw_error_message();
  expect_write(fd, 2 * kChunk, "text");
  EXPECT_EQ(read_at(again, 2 * kChunk, 10), "text");
  expect_refused(path(0), EBUSY, "member of a striped file");
  EXPECT_EQ(spw_fsync(fd), 0);
  expect_refused(path(2), EBUSY, "member of a striped file", O_RDWR | O_TRUNC);
  EXPECT_EQ(text_of(path(2)), "text") << "it was emptied though it was refused";
  expect_refused(in_order("64K", {1, 0, 2}), EBUSY, "another order");
  expect_refused(in_order("64K", {0, 1}), EBUSY, "another order");
  expect_refused(in_order("128K", {0, 1, 2}), EBUSY, "chunk");
  EXPECT_EQ(spw_close(fd), 0);
  expect_refused(path(0), EBUSY, "member of a striped file");
  EXPECT_EQ(spw_close(again), 0);

  const int alone = spw_open(path(2).c_str(), O_RDWR, 0);
  ASSERT_GE(alone, 0) << spw_error_message();
  EXPECT_EQ(read_at(alone, 0, 10), "text");
  expect_refused(name(), EBUSY, "is open by itself");
  expect_write(alone, 0, "TEXT");
  EXPECT_EQ(spw_close(alone), 0);
  const int third = open();
  ASSERT_GE(third, 0) << spw_error_message();
  EXPECT_EQ(read_at(third, 2 * kChunk, 10), "TEXT");
  EXPECT_EQ(spw_close(third), 0);
}

TEST_F(StripedFiles, what_others_change_while_it_is_closed_is_seen) {
  int fd = open();
  expect_write(fd, 0, std::string(3 * kChunk, 'a'));
  EXPECT_EQ(spw_close(fd), 0);
  fd = open();
  EXPECT_TRUE(read_at(fd, 0, 3 * kChunk) == std::string(3 * kChunk, 'a'));
  EXPECT_EQ(spw_close(fd), 0);
  ::usleep(20'000);
  std::ofstream(path(1), std::ios::in | std::ios::out) << "changed";
  fd = open();
  EXPECT_EQ(read_at(fd, kChunk, 8), "changeda");
  EXPECT_EQ(spw_close(fd), 0);
}

TEST_F(StripedFiles, one_that_nobody_has_open_takes_no_descriptors) {
  const auto descriptors = [&] {
    size_t count = 0;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      if (std::filesystem::read_symlink(each, gone).string().starts_with(directory())) ++count;
    }
    return count;
  };
  const int fd = open();
  expect_write(fd, 0, std::string(3 * kChunk, 'a'));
  EXPECT_EQ(descriptors(), 1 + 3 * 2);
  EXPECT_EQ(spw_close(fd), 0);
  EXPECT_EQ(descriptors(), 0);
}

TEST_F(StripedFiles, members_are_made_together_or_not_at_all) {
  expect_refused(name(), ENOENT, path(0));
  std::ofstream(path(1)) << "data";
  expect_refused(name(), ENOENT, "holds data", O_RDWR | O_CREAT);
  EXPECT_FALSE(std::filesystem::exists(path(0)));
  expect_refused(name(), EEXIST, path(1), O_RDWR | O_CREAT | O_EXCL);
  EXPECT_FALSE(std::filesystem::exists(path(0)));
  const int fd = open(O_RDWR | O_CREAT | O_TRUNC);
  ASSERT_GE(fd, 0) << spw_error_message();
  EXPECT_EQ(spw_lseek(fd, 0, SEEK_END), 0);
  EXPECT_EQ(spw_close(fd), 0);
  EXPECT_EQ(text_of(path(1)), "");
  for (size_t i = 0; i < 3; ++i) std::filesystem::remove(path(i));
  const int made = open(O_RDWR | O_CREAT | O_EXCL);
  ASSERT_GE(made, 0) << spw_error_message();
  expect_write(made, 0, "x");
  EXPECT_EQ(spw_close(made), 0);
  EXPECT_EQ(text_of(path(0)), "x");
}

TEST_F(StripedFiles, all_members_are_truncated_when_it_is_opened_so) {
  put_on_disk(std::string(10 * kChunk, 'a'));
  const int fd = open(O_RDWR);
  EXPECT_EQ(read_at(fd, 0, 1), "a");
  const int other = open(O_RDWR | O_TRUNC);
  ASSERT_GE(other, 0) << spw_error_message();
  EXPECT_EQ(spw_lseek(fd, 0, SEEK_END), 0);
  expect_write(fd, 5 * kChunk, "b");
  EXPECT_EQ(spw_close(fd), 0);
  EXPECT_EQ(spw_close(other), 0);
  EXPECT_TRUE(on_disk() == std::string(5 * kChunk, '\0') + "b");
  std::filesystem::resize_file(path(1), 1);  // of no striped file
  expect_refused(name(), EINVAL, "member 2 of a striped file");
  const int mended = open(O_RDWR | O_TRUNC);
  ASSERT_GE(mended, 0) << spw_error_message();
  EXPECT_EQ(spw_close(mended), 0);
  EXPECT_EQ(on_disk(), "");
}

TEST_F(StripedFiles, names_that_are_none_are_refused) {
  put_on_disk("");
  expect_refused("striped:", EINVAL, "two members");
  expect_refused("striped:" + path(0), EINVAL, "two members");
  expect_refused("striped:chunk=x," + path(0) + "," + path(1), EINVAL, "chunk has to be a size");
  expect_refused("striped:chunk=1000," + path(0) + "," + path(1), EINVAL, "multiple");
  expect_refused(in_order("64K", {0, 1, 0}), EINVAL, "is two members");
  expect_refused("striped:a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", EINVAL, "16 members at most");
  expect_refused("striped:" + path(0) + "," + directory(), EINVAL, "neither a regular file", O_RDONLY);
  expect_refused("striped:" + path(0) + ",/dev/null", EINVAL, "neither a regular file");
}

TEST_F(StripedFiles, one_that_is_refused_is_not_emptied) {
  put_on_disk(std::string(3 * kChunk, 'x'));
  expect_refused(in_order("6K", {0, 1}), EINVAL, "multiple", O_RDWR | O_TRUNC);
  expect_refused(in_order("0", {0, 1}), EINVAL, "multiple", O_RDWR | O_TRUNC);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(text_of(path(i)).size(), kChunk);
}

// A file as a device, while this lives.
class Loop {
 public:
  explicit Loop(const std::string& path) {
    const int control = ::open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    const int number = control < 0 ? -1 : ::ioctl(control, LOOP_CTL_GET_FREE);
    if (number < 0) failed_ = std::string("there are no loop devices: ") + std::strerror(errno);
    if (control >= 0) ::close(control);
    if (number < 0) return;
    path_ = "/dev/loop" + std::to_string(number);
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    device_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    if (device_ < 0 || ::ioctl(device_, LOOP_SET_FD, file) != 0)
      failed_ = "cannot set " + path_ + " up: " + std::strerror(errno);
    ::close(file);
  }
  ~Loop() {
    if (device_ >= 0 && failed_.empty()) ::ioctl(device_, LOOP_CLR_FD, 0);
    if (device_ >= 0) ::close(device_);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  const std::string& failed() const { return failed_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_, failed_;
  int device_ = -1;
};

TEST_F(StripedFiles, devices_are_members_of_a_file_that_keeps_its_size) {
  constexpr size_t kDevice = 2 * kMega, kSize = 2 * kDevice;
  for (size_t i = 0; i < 2; ++i) {
    std::ofstream(path(i)).close();
    std::filesystem::resize_file(path(i), kDevice + i * 4096);
  }
  Loop first(path(0));
  if (!first.failed().empty()) GTEST_SKIP() << first.failed();
  Loop second(path(1));
  if (!second.failed().empty()) GTEST_SKIP() << second.failed();
  const std::string on_devices = "striped:" + first.path() + "," + second.path();
  int fd = spw_open(on_devices.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  ASSERT_GE(fd, 0) << spw_error_message();
  EXPECT_EQ(spw_lseek(fd, 0, SEEK_END), static_cast<int64_t>(kSize));
  std::mt19937_64 random(1);
  const std::string text = random_text(random, kSize);
  expect_write(fd, 0, text);
  EXPECT_EQ(spw_pwrite(fd, "x", 1, kSize), -ENOSPC);
  EXPECT_EQ(spw_pwrite(fd, text.data(), 100, kSize - 10), 10) << "as many as there is room for";
  EXPECT_EQ(spw_ftruncate(fd, kSize / 2), -EINVAL);
  EXPECT_EQ(spw_ftruncate(fd, kSize), 0);
  EXPECT_EQ(spw_fsync(fd), 0) << spw_error_message();
  EXPECT_EQ(spw_close(fd), 0) << spw_error_message();
  fd = spw_open(on_devices.c_str(), O_RDONLY, 0);
  ASSERT_GE(fd, 0) << spw_error_message();
  EXPECT_TRUE(read_at(fd, 0, kSize) == text.substr(0, kSize - 10) + text.substr(0, 10));
  EXPECT_EQ(spw_close(fd), 0);
  EXPECT_TRUE(text_of(path(1)).substr(0, 512 << 10) == text.substr(512 << 10, 512 << 10));
  std::ofstream(path(2)).close();
  expect_refused("striped:" + first.path() + "," + path(2), EINVAL, "all devices");
}

}  // namespace
}  // namespace spw::testing
