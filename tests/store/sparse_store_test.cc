// What only the sparse store does: files that come and go with their segments, metadata, modes, limits.
#include "store/sparse_store.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "store_fixture.h"

namespace spw::store {
namespace {

constexpr uint64_t kSegment = kMiB;

class SparseStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    scratch_ = make_scratch_directory();
    directory_ = scratch_ + "/store";
  }
  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(scratch_);
  }

  Status open(Access access, Shape shape = {}) {
    store_.reset();
    auto opened = SparseStore::open(directory_, {access, shape, IoEngineKind::kAuto, true, &faults_});
    if (!opened) return opened.status();
    store_ = std::move(*opened);
    return Status::ok();
  }
  int perform(Request request) { return store_->transfer(request).error(); }
  int write(uint64_t offset, uint64_t bytes, uint64_t seed) {
    return perform(transfer_of(Op::kWrite, offset, Buffer(bytes, seed)));
  }
  ::testing::AssertionResult holds(uint64_t offset, uint64_t bytes, uint64_t seed) {
    Buffer read(bytes);
    if (int error = perform(transfer_of(Op::kRead, offset, read)))
      return ::testing::AssertionFailure() << "errno " << error;
    bool right = seed == 0 ? read.is_zero() : read == Buffer(bytes, seed);
    return right ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << "other bytes";
  }
  std::vector<std::string> segment_files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_))
      if (entry.path().filename().string().starts_with("segment-")) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  uint64_t allocated_bytes(const std::string& name) const {
    struct stat info{};
    return ::stat((directory_ + "/" + name).c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_blocks) * 512
                                                                 : 0;
  }

  std::string scratch_, directory_;
  FaultPlan faults_;
  std::unique_ptr<SparseStore> store_;
};

TEST_F(SparseStoreTest, only_segments_that_were_written_have_files) {
  ASSERT_TRUE(open(Access::kCreate, {kSegment, 100 * kSegment}));
  EXPECT_TRUE(segment_files().empty());
  EXPECT_TRUE(holds(50 * kSegment - kUnit, 2 * kUnit, 0));
  EXPECT_TRUE(segment_files().empty()) << "a read has made a file";
  EXPECT_EQ(write(7 * kSegment, kUnit, 1), 0);
  EXPECT_EQ(write(41 * kSegment - kUnit, 2 * kUnit, 2), 0);
  EXPECT_EQ(segment_files(),
            (std::vector<std::string>{"segment-000007", "segment-000040", "segment-000041"}));
  EXPECT_TRUE(holds(41 * kSegment - kUnit, 2 * kUnit, 2));
  EXPECT_EQ(store_->existing_segments(), 3u);
}

TEST_F(SparseStoreTest, what_was_written_is_there_when_it_is_opened_again) {
  ASSERT_TRUE(open(Access::kCreate, {kSegment, 20 * kSegment}));
  EXPECT_EQ(write(3 * kSegment, 4 * kUnit, 1), 0);
  EXPECT_EQ(write(9 * kSegment, kUnit, 2), 0);
  EXPECT_EQ(perform(sync_of()), 0);
  for (Access access : {Access::kOpen, Access::kOpenOrCreate, Access::kRead}) {
    ASSERT_TRUE(open(access));
    EXPECT_EQ(store_->size_bytes(), 20 * kSegment);
    EXPECT_EQ(store_->shape().segment_bytes, kSegment);
    EXPECT_TRUE(holds(3 * kSegment, 4 * kUnit, 1));
    EXPECT_TRUE(holds(9 * kSegment, kUnit, 2));
    EXPECT_TRUE(holds(10 * kSegment, kUnit, 0));
  }
}

TEST_F(SparseStoreTest, a_whole_discarded_segment_loses_its_file_and_a_part_its_space) {
  ASSERT_TRUE(open(Access::kCreate, {kSegment, 4 * kSegment - 64 * kKiB}));
  EXPECT_EQ(write(0, 2 * kSegment, 1), 0);
  EXPECT_EQ(write(3 * kSegment, kSegment - 64 * kKiB, 2), 0);
  EXPECT_EQ(perform(discard_of(kSegment / 2, kSegment + kSegment / 2)), 0);
  EXPECT_EQ(segment_files(), (std::vector<std::string>{"segment-000000", "segment-000003"}));
  EXPECT_LE(allocated_bytes("segment-000000"), kSegment / 2 + 64 * kKiB);
  EXPECT_TRUE(holds(kSegment / 2, kSegment + kSegment / 2, 0));
  EXPECT_EQ(perform(discard_of(3 * kSegment, kSegment - 64 * kKiB)), 0);
  EXPECT_EQ(segment_files(), (std::vector<std::string>{"segment-000000"})) << "the last one is whole, too";
  EXPECT_EQ(write(kSegment, kUnit, 3), 0);
  EXPECT_TRUE(holds(kSegment, kUnit, 3)) << "a removed segment can come back";
  EXPECT_TRUE(holds(kSegment + kUnit, kUnit, 0));
}

TEST_F(SparseStoreTest, another_shape_is_refused_with_the_one_it_has) {
  ASSERT_TRUE(open(Access::kCreate, {kSegment, 20 * kSegment}));
  for (Shape other : {Shape{2 * kSegment, 0}, Shape{0, 10 * kSegment}, Shape{kSegment, 21 * kSegment}}) {
    Status status = open(Access::kOpenOrCreate, other);
    EXPECT_EQ(status.error(), EINVAL);
    EXPECT_NE(status.message().find("segment=1048576 and size=20971520"), std::string::npos)
        << status.message();
    EXPECT_NE(status.message().find(directory_), std::string::npos);
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }
  EXPECT_TRUE(open(Access::kOpen, {kSegment, 20 * kSegment}));
}

TEST_F(SparseStoreTest, modes_say_whether_there_has_to_be_one) {
  EXPECT_EQ(open(Access::kOpen).error(), ENOENT);
  std::filesystem::create_directory(directory_);
  EXPECT_EQ(open(Access::kOpen).error(), ENOENT);
  EXPECT_EQ(open(Access::kOpenOrCreate).error(), EINVAL) << "without a size there is nothing to create";
  EXPECT_TRUE(open(Access::kOpenOrCreate, {kSegment, 2 * kSegment}));
  EXPECT_EQ(open(Access::kCreate, {kSegment, 2 * kSegment}).error(), EEXIST);
}

TEST_F(SparseStoreTest, shapes_that_cannot_be_are_refused) {
  for (Shape shape :
       {Shape{kUnit, kMiB}, Shape{kSegment, 1000}, Shape{64 * kKiB, 64 * kKiB * (kSegmentCountMax + 1)},
        Shape{uint64_t{1} << 63, kMiB}, Shape{kSparseBytesMax, 2 * kSparseBytesMax}})
    EXPECT_EQ(open(Access::kCreate, shape).error(), EINVAL);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/spillway-sparse"));
}

TEST_F(SparseStoreTest, damaged_metadata_and_cut_segments_are_refused) {
  ASSERT_TRUE(open(Access::kCreate, {kSegment, 4 * kSegment}));
  EXPECT_EQ(write(0, kUnit, 1), 0);
  store_.reset();
  const std::string metadata = directory_ + "/spillway-sparse";
  std::ofstream(metadata) << "spillway-sparse 2\nsegment_bytes 1048576\nsize_bytes 4194304\n";
  Status newer = open(Access::kOpen);
  EXPECT_EQ(newer.error(), EINVAL);
  EXPECT_NE(newer.message().find("version 2"), std::string::npos) << newer.message();
  for (const char* text :
       {"", "what", "spillway-sparse 1\nsegment_bytes 1\nsize_bytes 4194304\n",
        "spillway-sparse 1\nsegment_bytes 1048576\n",
        // So that their sum is more than 64 bits have.
        "spillway-sparse 1\nsegment_bytes 9223372036854775808\nsize_bytes 18446744073709547520\n"}) {
    std::ofstream(metadata, std::ios::trunc) << text;
    EXPECT_EQ(open(Access::kOpen).error(), EUCLEAN) << text;
  }
  std::filesystem::remove(metadata);
  EXPECT_EQ(open(Access::kOpenOrCreate, {kSegment, 4 * kSegment}).error(), EEXIST)
      << "segments of unknown size are not taken over";
  std::ofstream(metadata) << "spillway-sparse 1\nsegment_bytes 1048576\nsize_bytes 4194304\n";
  EXPECT_TRUE(open(Access::kOpen));
  store_.reset();
  std::filesystem::resize_file(directory_ + "/segment-000000", 1000);
  EXPECT_EQ(open(Access::kOpen).error(), EUCLEAN);
}

// Opening a pipe waits for who writes to it, and there is nobody.
TEST_F(SparseStoreTest, what_is_no_file_is_refused_at_once) {
  ASSERT_TRUE(open(Access::kCreate, {kSegment, 4 * kSegment}));
  store_.reset();
  const std::string segment = directory_ + "/segment-000001", metadata = directory_ + "/spillway-sparse";
  ASSERT_EQ(::mkfifo(segment.c_str(), 0600), 0);
  for (const Access access : {Access::kRead, Access::kOpen}) {
    const Status status = open(access);
    EXPECT_EQ(status.error(), EUCLEAN);
    EXPECT_NE(status.message().find("segment-000001 is no file"), std::string::npos) << status.message();
  }
  std::filesystem::remove(segment);
  std::filesystem::remove(metadata);
  ASSERT_EQ(::mkfifo(metadata.c_str(), 0600), 0);
  for (const Access access : {Access::kRead, Access::kOpen}) EXPECT_FALSE(open(access));
  EXPECT_FALSE(SegmentDirectory::shape_of(directory_));
}

TEST_F(SparseStoreTest, a_link_in_place_of_a_file_is_not_followed) {
  ASSERT_TRUE(open(Access::kCreate, {kSegment, 4 * kSegment}));
  const std::string segment = directory_ + "/segment-000001", metadata = directory_ + "/spillway-sparse";
  const std::string elsewhere = directory_ + "/elsewhere";
  std::ofstream(elsewhere) << "of somebody else";
  // Put there while the store is open: what is written goes nowhere.
  std::filesystem::create_symlink(elsewhere, segment);
  EXPECT_EQ(write(kSegment, kUnit, 1), ELOOP);
  EXPECT_EQ(std::filesystem::file_size(elsewhere), 16u);
  store_.reset();
  for (const char* const to : {elsewhere.c_str(), "/nowhere"}) {
    std::filesystem::remove(segment);
    std::filesystem::create_symlink(to, segment);
    for (const Access access : {Access::kRead, Access::kOpen}) {
      const Status status = open(access);
      EXPECT_EQ(status.error(), EUCLEAN);
      EXPECT_NE(status.message().find("segment-000001 is a symbolic link"), std::string::npos)
          << status.message();
    }
  }
  std::filesystem::remove(segment);
  std::filesystem::rename(metadata, elsewhere);
  std::filesystem::create_symlink(elsewhere, metadata);
  for (const Access access : {Access::kRead, Access::kOpen, Access::kOpenOrCreate}) {
    const Status status = open(access);
    EXPECT_EQ(status.error(), ELOOP);
    EXPECT_NE(status.message().find("spillway-sparse is a symbolic link"), std::string::npos)
        << status.message();
  }
  EXPECT_FALSE(SegmentDirectory::shape_of(directory_));
}

TEST_F(SparseStoreTest, a_segment_whose_maker_was_killed_before_it_had_its_size_is_zeros) {
  ASSERT_TRUE(open(Access::kCreate, {kSegment, 4 * kSegment}));
  std::ofstream(directory_ + "/segment-000002");
  ASSERT_TRUE(open(Access::kOpen));
  EXPECT_TRUE(holds(2 * kSegment, kSegment, 0));
  EXPECT_EQ(write(2 * kSegment + kUnit, kUnit, 1), 0);
  EXPECT_TRUE(holds(2 * kSegment + kUnit, kUnit, 1));
}

TEST_F(SparseStoreTest, one_writer_or_several_readers_have_it_open) {
  ASSERT_TRUE(open(Access::kCreate, {kSegment, 4 * kSegment}));
  EXPECT_EQ(write(0, kUnit, 1), 0);
  EXPECT_EQ(SparseStore::open(directory_, {.access = Access::kOpen}).status().error(), EBUSY);
  EXPECT_EQ(SparseStore::open(directory_, {.access = Access::kRead}).status().error(), EBUSY);
  ASSERT_TRUE(open(Access::kRead));
  auto second = SparseStore::open(directory_, {.access = Access::kRead});
  ASSERT_TRUE(second) << second.status().message();
  Buffer read(kUnit);
  Request request = transfer_of(Op::kRead, 0, read);
  EXPECT_TRUE((*second)->transfer(request));
  EXPECT_EQ(read, Buffer(kUnit, 1));
}

TEST_F(SparseStoreTest, a_store_opened_for_reading_refuses_all_else) {
  ASSERT_TRUE(open(Access::kCreate, {kSegment, 4 * kSegment}));
  EXPECT_EQ(write(0, kUnit, 1), 0);
  ASSERT_TRUE(open(Access::kRead));
  EXPECT_EQ(write(0, kUnit, 2), EBADF);
  EXPECT_EQ(write(2 * kSegment, kUnit, 2), EBADF);
  EXPECT_EQ(perform(discard_of(0, kSegment)), EBADF);
  EXPECT_TRUE(holds(0, kUnit, 1));
  EXPECT_EQ(segment_files().size(), 1u);
}

TEST_F(SparseStoreTest, more_segments_than_descriptors_work) {
  constexpr uint64_t kCount = kOpenSegmentsMax + 40;
  ASSERT_TRUE(open(Access::kCreate, {64 * kKiB, kCount * 64 * kKiB}));
  for (uint64_t i = 0; i < kCount; ++i) ASSERT_EQ(write(i * 64 * kKiB, kUnit, i + 1), 0) << i;
  EXPECT_EQ(store_->open_segments(), kOpenSegmentsMax);
  EXPECT_EQ(store_->existing_segments(), kCount);
  EXPECT_EQ(perform(sync_of()), 0);
  EXPECT_EQ(store_->open_segments(), kOpenSegmentsMax);
  for (uint64_t i = 0; i < kCount; ++i) ASSERT_TRUE(holds(i * 64 * kKiB, kUnit, i + 1)) << i;
}

TEST_F(SparseStoreTest, a_spill_use_leaves_no_name_and_has_a_limit_of_segments) {
  EXPECT_EQ(open(Access::kSpill).error(), ENOENT) << "it makes no directory";
  std::filesystem::create_directory(directory_);
  Status too_many = open(Access::kSpill, {kSegment, (kOpenSegmentsMax + 1) * kSegment});
  EXPECT_EQ(too_many.error(), EINVAL);
  ASSERT_TRUE(open(Access::kSpill, {kSegment, kOpenSegmentsMax * kSegment}));
  EXPECT_EQ(write(5 * kSegment - kUnit, 2 * kUnit, 1), 0);
  EXPECT_TRUE(holds(5 * kSegment - kUnit, 2 * kUnit, 1));
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
  EXPECT_EQ(store_->open_segments(), 2u);
  EXPECT_EQ(perform(discard_of(4 * kSegment, 2 * kSegment)), 0);
  EXPECT_EQ(store_->open_segments(), 0u);
  ASSERT_TRUE(open(Access::kSpill));
  EXPECT_GE(store_->size_bytes(), kTiB) << "the default is as large as a spill file";
}

TEST_F(SparseStoreTest, threads_that_write_discard_and_sync_keep_their_own_segments_whole) {
  constexpr uint64_t kThreads = 4, kCount = 40, kBytes = 64 * kKiB;
  ASSERT_TRUE(open(Access::kCreate, {kBytes, kThreads * kCount * kBytes}));
  Atomic<uint64_t> failures(0);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Rng rng(t);
      std::vector<uint64_t> seeds(kCount, 0);
      for (uint64_t round = 0; round < 300; ++round) {
        uint64_t segment = rng.below(kCount);
        uint64_t offset = (segment * kThreads + t) * kBytes;  // neighbours belong to other threads
        bool good = true;
        switch (rng.below(8)) {
          case 0:
            good = perform(discard_of(offset, kBytes)) == 0;
            seeds[segment] = 0;
            break;
          case 1:
            good = perform(sync_of()) == 0;
            break;
          case 2:
          case 3:
          case 4:
            good = static_cast<bool>(holds(offset, kBytes, seeds[segment]));
            break;
          default:
            seeds[segment] = 1 + t * 1000 + round;
            good = write(offset, kBytes, seeds[segment]) == 0;
        }
        failures.fetch_add_relaxed(!good);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load_relaxed(), 0u);
}

TEST_F(SparseStoreTest, a_failed_transfer_names_the_store) {
  ASSERT_TRUE(open(Access::kCreate, {kSegment, 4 * kSegment}));
  ASSERT_TRUE(faults_.add("read:1:EIO"));
  Buffer buffer(kUnit);
  Request request = transfer_of(Op::kRead, kSegment, buffer);
  Status status = store_->transfer(request);
  EXPECT_EQ(status.error(), EIO);
  EXPECT_NE(status.message().find("sparse:" + directory_), std::string::npos) << status.message();
}

// A lack of descriptors is an error of the write that needed one, and passes.
TEST_F(SparseStoreTest, a_process_without_descriptors_fails_only_what_needs_one) {
  ASSERT_TRUE(open(Access::kCreate, {kSegment, 4 * kSegment}));
  EXPECT_EQ(write(0, kUnit, 1), 0);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  int error = write(kSegment, kUnit, 2);
  EXPECT_TRUE(holds(0, kUnit, 1));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(error, EMFILE);
  EXPECT_EQ(write(kSegment, kUnit, 2), 0);
  EXPECT_TRUE(holds(kSegment, kUnit, 2));
}

}  // namespace
}  // namespace spw::store
