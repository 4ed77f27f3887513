#include "store/file_store.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "store_fixture.h"

namespace spw::store {
namespace {

class File : public ::testing::TestWithParam<bool> {  // direct or not
 protected:
  void SetUp() override {
    directory_ = make_scratch_directory();
    path_ = directory_ + "/data";
    options_.direct = GetParam();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void make_file(uint64_t bytes) {
    Buffer contents(round_up(bytes, kUnit), 77);
    int fd = ::open(path_.c_str(), O_CREAT | O_TRUNC | O_RDWR, 0600);
    ASSERT_EQ(::pwrite(fd, contents.data(), bytes, 0), static_cast<ssize_t>(bytes));
    ::close(fd);
  }
  std::string contents_of_file() {
    std::string text(std::filesystem::file_size(path_), 0);
    platform::File file(::open(path_.c_str(), O_RDONLY));
    EXPECT_EQ(::pread(file.fd(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return text;
  }

  std::string directory_;
  std::string path_;
  FileOptions options_;
};

TEST_P(File, an_end_inside_the_last_block_reads_zeros_and_is_never_moved) {
  constexpr uint64_t kBytes = 10'000;
  make_file(kBytes);
  auto store = FileStore::open(path_, options_);
  ASSERT_TRUE(store) << store.status().message();
  EXPECT_EQ((*store)->size_bytes(), kBytes);
  Buffer read(16 * kKiB);  // one block of 16 KiB: the file ends 10,000 bytes into it
  Request request = transfer_of(Op::kRead, 0, read);
  ASSERT_TRUE((*store)->transfer(request));
  EXPECT_TRUE(read.is_zero(kBytes));
  EXPECT_EQ(std::memcmp(read.data(), contents_of_file().data(), kBytes), 0);
  for (IoEngineKind engine :
       {IoEngineKind::kAuto, IoEngineKind::kUring, IoEngineKind::kAio, IoEngineKind::kThreads}) {
    options_.engine = engine;
    auto again = FileStore::open(path_, options_);
    ASSERT_TRUE(again);
    Buffer written(16 * kKiB, 5 + static_cast<uint64_t>(engine));
    Request write = transfer_of(Op::kWrite, 0, written);
    Request* pointer = &write;
    telemetry::Totals before = telemetry::read_totals();
    auto queue = (*again)->open_queue(2);
    if (!queue) continue;
    ASSERT_EQ((*queue)->submit({&pointer, 1}), 1u);
    Completion done[1];
    while ((*queue)->reap(done) == 0) (*queue)->wait(UINT64_MAX);
    EXPECT_EQ(done[0].error, 0);
    std::string contents = contents_of_file();
    ASSERT_EQ(contents.size(), kBytes);
    EXPECT_EQ(std::memcmp(contents.data(), written.data(), kBytes), 0);
    telemetry::Totals after = telemetry::read_totals();
    EXPECT_EQ(telemetry::total(after, telemetry::Counter::store_retries),
              telemetry::total(before, telemetry::Counter::store_retries))
        << "stopping at the end is no short transfer";
  }
}

TEST_P(File, a_write_of_only_the_unaligned_end_works) {
  make_file(8192 + 5);
  auto store = FileStore::open(path_, options_);
  ASSERT_TRUE(store);
  Buffer written(kUnit, 6);
  Request write = transfer_of(Op::kWrite, 8192, written);
  ASSERT_TRUE((*store)->transfer(write));
  std::string contents = contents_of_file();
  ASSERT_EQ(contents.size(), 8192u + 5);
  EXPECT_EQ(std::memcmp(contents.data() + 8192, written.data(), 5), 0);
}

TEST_P(File, a_file_that_lost_its_end_meanwhile_is_an_error_and_no_zeros) {
  make_file(64 * kKiB);
  auto store = FileStore::open(path_, options_);
  ASSERT_TRUE(store);
  std::filesystem::resize_file(path_, 16 * kKiB);
  Buffer read(16 * kKiB);
  Request inside = transfer_of(Op::kRead, 0, read);
  EXPECT_TRUE((*store)->transfer(inside));
  Request cut = transfer_of(Op::kRead, 8 * kKiB, read);
  EXPECT_EQ((*store)->transfer(cut).error(), EIO);
  Request gone = transfer_of(Op::kRead, 32 * kKiB, read);
  Status status = (*store)->transfer(gone);
  EXPECT_EQ(status.error(), EIO);
  EXPECT_NE(status.message().find("cannot read 16384 bytes at offset 32768 of file:" + path_),
            std::string::npos)
      << status.message();
}

TEST_P(File, of_a_descriptor_keeps_its_access_and_outlives_it) {
  make_file(64 * kKiB);
  int fd = ::open(path_.c_str(), O_RDONLY);
  std::filesystem::remove(path_);
  auto store = FileStore::open_descriptor(fd, "gone", options_);
  ::close(fd);
  ASSERT_TRUE(store) << store.status().message();
  Buffer buffer(kUnit, 1);
  Request read = transfer_of(Op::kRead, 0, buffer);
  EXPECT_TRUE((*store)->transfer(read));
  Request write = transfer_of(Op::kWrite, 0, buffer);
  EXPECT_EQ((*store)->transfer(write).error(), EBADF);
}

TEST_P(File, a_missing_file_and_a_directory_are_refused_by_name) {
  auto missing = FileStore::open(path_, options_);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.status().error(), ENOENT);
  EXPECT_NE(missing.status().message().find(path_), std::string::npos);
  EXPECT_EQ(FileStore::open(directory_, options_).status().error(), EISDIR);
}

TEST_P(File, discards_give_space_back_and_reservations_take_it) {
  auto store = FileStore::open_spill(directory_, options_);
  ASSERT_TRUE(store);
  auto used_bytes = [&] {
    struct stat info{};
    EXPECT_EQ(::fstat((*store)->fd(), &info), 0);
    return static_cast<uint64_t>(info.st_blocks) * 512;
  };
  EXPECT_LT(used_bytes(), kMiB);
  ASSERT_TRUE((*store)->reserve(kTiB, kUnit));
  EXPECT_GE(used_bytes(), kReserveChunkBytes);
  Request discard = discard_of(kTiB, kReserveChunkBytes);
  ASSERT_TRUE((*store)->transfer(discard));
  EXPECT_LT(used_bytes(), kMiB);
  ASSERT_TRUE((*store)->reserve(kTiB + kUnit, kUnit));
  EXPECT_GE(used_bytes(), kReserveChunkBytes) << "a discard forgets that its range was reserved";
}

INSTANTIATE_TEST_SUITE_P(Both, File, ::testing::Bool(),
                         [](const auto& tested) { return tested.param ? "direct" : "buffered"; });

TEST(Spill, is_its_owners_alone_and_has_no_name) {
  std::string directory = make_scratch_directory();
  auto store = FileStore::open_spill(directory);
  ASSERT_TRUE(store) << store.status().message();
  struct stat info{};
  ASSERT_EQ(::fstat((*store)->fd(), &info), 0);
  EXPECT_EQ(info.st_nlink, 0u);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  std::filesystem::remove_all(directory);
}

TEST(Spill, holds_blocks_up_to_the_end_of_managed_space_without_taking_room_for_the_rest) {
  std::string directory = make_scratch_directory();
  auto store = FileStore::open_spill(directory);
  ASSERT_TRUE(store);
  uint64_t size = (*store)->size_bytes();
  EXPECT_GE(size, kSpillBytesMax - kMaxBlockBytes);
  Buffer written(kUnit, 3), read(kUnit);
  for (uint64_t offset : {uint64_t{0}, 5 * kTiB, round_down(size, kUnit) - kUnit}) {
    Request write = transfer_of(Op::kWrite, offset, written), back = transfer_of(Op::kRead, offset, read);
    ASSERT_TRUE((*store)->transfer(write));
    ASSERT_TRUE((*store)->transfer(back));
    EXPECT_EQ(written, read);
  }
  struct stat info{};
  ASSERT_EQ(::fstat((*store)->fd(), &info), 0);
  EXPECT_LT(info.st_blocks * 512, 1 << 20);
  std::filesystem::remove_all(directory);
}

[[noreturn]] void open_spill_where_files_are_short(const std::string& directory) {
  rlimit limit{64 * kMiB, 64 * kMiB};
  ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &limit);
  auto store = FileStore::open_spill(directory);
  bool fits = store && (*store)->size_bytes() <= 64 * kMiB && (*store)->size_bytes() >= 32 * kMiB;
  ::_exit(fits ? 0 : 1);
}

TEST(Spill, is_as_long_as_the_process_may_make_a_file) {
  std::string directory = make_scratch_directory();
  EXPECT_EXIT(open_spill_where_files_are_short(directory), ::testing::ExitedWithCode(0), "");
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace spw::store
