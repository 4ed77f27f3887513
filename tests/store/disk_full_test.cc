// What happens when a filesystem is really full: small ones are mounted in a mount namespace of this process alone.
#include <sched.h>
#include <sys/mount.h>

#include <cstdlib>

#include "store_fixture.h"

namespace spw::store {
namespace {

constexpr uint64_t kFilesystemBytes = 32 * kMiB;

// A private mount namespace, made once. Empty, or why there is none.
const std::string& enter_namespace() {
  static const std::string why_not = [] {
    if (::unshare(CLONE_NEWNS) != 0) return std::string("no mount namespace: ") + std::strerror(errno);
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return std::string("no private mounts");
    return std::string();
  }();
  return why_not;
}

enum class Filesystem : uint8_t { kTmpfs, kExt4 };

struct Full {
  Filesystem filesystem;
  IoEngineKind engine;
};

class DiskFull : public ::testing::TestWithParam<Full> {
 protected:
  void SetUp() override {
    if (!enter_namespace().empty()) GTEST_SKIP() << enter_namespace();
    directory_ = make_scratch_directory();
    mount_point_ = directory_ + "/small";
    std::filesystem::create_directory(mount_point_);
    if (GetParam().filesystem == Filesystem::kTmpfs) {
      std::string size = "size=" + std::to_string(kFilesystemBytes);
      mounted_ = ::mount("tmpfs", mount_point_.c_str(), "tmpfs", 0, size.c_str()) == 0;
    } else {
      std::string image = directory_ + "/image";
      std::string command = "truncate -s " + std::to_string(kFilesystemBytes) + " " + image +
                            " && mkfs.ext4 -q -m 0 " + image + " && mount -o loop " + image + " " +
                            mount_point_ + " 2>/dev/null";
      mounted_ = std::system(command.c_str()) == 0;
    }
    if (!mounted_) GTEST_SKIP() << "cannot mount a small filesystem here";
    options_.engine = GetParam().engine;
    auto store = FileStore::open_spill(mount_point_, options_);
    ASSERT_TRUE(store) << store.status().message();
    store_ = std::move(*store);
  }
  void TearDown() override {
    store_.reset();
    if (mounted_) ::umount(mount_point_.c_str());
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }

  int perform(Request request) {
    auto queue = store_->open_queue(1);
    EXPECT_TRUE(queue) << queue.status().message();
    Request* pointer = &request;
    EXPECT_EQ((*queue)->submit({&pointer, 1}), 1u);
    Completion done[1];
    while ((*queue)->reap(done) == 0) (*queue)->wait(UINT64_MAX);
    return done[0].error;
  }

  std::string directory_, mount_point_;
  bool mounted_ = false;
  FileOptions options_;
  std::unique_ptr<FileStore> store_;
};

TEST_P(DiskFull, writes_fail_with_enospc_and_what_was_written_stays) {
  uint64_t written_blocks = 0;
  int error = 0;
  for (; written_blocks < 2 * kFilesystemBytes / kMiB && error == 0; written_blocks += error == 0)
    error = perform(transfer_of(Op::kWrite, written_blocks * kMiB, Buffer(kMiB, written_blocks + 1)));
  EXPECT_EQ(error, ENOSPC);
  ASSERT_GT(written_blocks, 8u);
  for (uint64_t block = 0; block < written_blocks; ++block) {
    Buffer read(kMiB);
    ASSERT_EQ(perform(transfer_of(Op::kRead, block * kMiB, read)), 0);
    EXPECT_EQ(read, Buffer(kMiB, block + 1));
  }
}

TEST_P(DiskFull, what_was_reserved_can_be_written_though_nothing_else_can) {
  uint64_t reserved_blocks = 0;
  Status status;
  for (; reserved_blocks < 2 * kFilesystemBytes / kMiB; ++reserved_blocks) {
    status = store_->reserve(reserved_blocks * kMiB, kMiB);
    if (!status) break;
  }
  EXPECT_EQ(status.error(), ENOSPC);
  EXPECT_GT(reserved_blocks, (kFilesystemBytes - 12 * kMiB) / kMiB)
      << "the rest that no whole chunk fits is used too";
  // Somebody else takes what is left.
  auto other = FileStore::open_spill(mount_point_, options_);
  ASSERT_TRUE(other);
  for (uint64_t offset = 0; offset < kFilesystemBytes; offset += kUnit)
    if (!platform::allocate_space(platform::File(::dup((*other)->fd())), offset, kUnit)) break;
  Buffer buffer(kMiB, 1);
  for (uint64_t block = 0; block < reserved_blocks; ++block)
    EXPECT_EQ(perform(transfer_of(Op::kWrite, block * kMiB, buffer)), 0) << block;
  Buffer big(16 * kMiB, 2);
  EXPECT_EQ(perform(transfer_of(Op::kWrite, kGiB, big)), ENOSPC);
}

TEST_P(DiskFull, a_discard_makes_room_again) {
  uint64_t block = 0;
  Buffer buffer(kMiB, 1);
  while (perform(transfer_of(Op::kWrite, block * kMiB, buffer)) == 0) ++block;
  ASSERT_GT(block, 8u);
  EXPECT_EQ(perform(discard_of(0, 4 * kMiB)), 0);
  EXPECT_EQ(perform(transfer_of(Op::kWrite, kGiB, buffer)), 0);
}

TEST_P(DiskFull, a_sparse_store_keeps_what_it_has_and_takes_more_when_a_segment_is_given_back) {
  constexpr uint64_t kSegment = 2 * kMiB;
  store_.reset();
  auto sparse = SparseStore::open(
      mount_point_ + "/sparse",
      {Access::kCreate, {kSegment, 2 * kFilesystemBytes}, GetParam().engine, true, nullptr});
  ASSERT_TRUE(sparse) << sparse.status().message();
  auto transfer = [&](Request request) { return (*sparse)->transfer(request).error(); };
  uint64_t written = 0;
  int error = 0;
  for (; written < 2 * kFilesystemBytes / kMiB && error == 0; written += error == 0)
    error = transfer(transfer_of(Op::kWrite, written * kMiB, Buffer(kMiB, written + 1)));
  EXPECT_EQ(error, ENOSPC);
  ASSERT_GT(written, 8u);
  EXPECT_EQ((*sparse)->reserve(kSegment * 30, kSegment).error(), ENOSPC);
  for (uint64_t block = 0; block < written; ++block) {
    Buffer read(kMiB);
    ASSERT_EQ(transfer(transfer_of(Op::kRead, block * kMiB, read)), 0);
    EXPECT_EQ(read, Buffer(kMiB, block + 1));
  }
  EXPECT_EQ(transfer(discard_of(kSegment, 2 * kSegment)), 0);
  EXPECT_EQ(transfer(transfer_of(Op::kWrite, written * kMiB, Buffer(kMiB, 77))), 0);
  EXPECT_TRUE((*sparse)->reserve(kSegment, kMiB));
}

// Beside a directory with room: what is spilled goes there, and what the small filesystem has room for is used.
TEST_P(DiskFull, of_several_places_a_full_one_gets_no_more_and_sizes_add_up) {
  constexpr uint64_t kChunk = 256 * kKiB, kAll = 6 * kFilesystemBytes / kMiB;
  store_.reset();
  std::vector<std::unique_ptr<Store>> members;
  for (const std::string& place : {mount_point_, directory_}) {
    auto member = FileStore::open_spill(place, options_);
    ASSERT_TRUE(member) << member.status().message();
    members.push_back(std::move(*member));
  }
  auto balanced = BalancedStore::create(std::move(members), kChunk);
  ASSERT_TRUE(balanced) << balanced.status().message();
  for (uint64_t block = 0; block < kAll; ++block) {
    if (block % 2 == 0) {
      ASSERT_TRUE((*balanced)->reserve(block * kMiB, kMiB)) << block;
    }
    const Buffer written(kMiB, block + 1);
    Request write = transfer_of(Op::kWrite, block * kMiB, written);
    const Status status = (*balanced)->transfer(write);
    ASSERT_TRUE(status) << block << ": " << status.message();
  }
  for (uint64_t block = 0; block < kAll; ++block) {
    Buffer read(kMiB);
    Request again = transfer_of(Op::kRead, block * kMiB, read);
    ASSERT_TRUE((*balanced)->transfer(again));
    EXPECT_EQ(read, Buffer(kMiB, block + 1));
  }
  // How much it got depends on how fast it answered beside the other: a fair half would be three times what fits.
  EXPECT_GT((*balanced)->chunks_of(0), kFilesystemBytes / 2 / kChunk);
  EXPECT_LE((*balanced)->chunks_of(0), kFilesystemBytes / kChunk);
  Request discard = discard_of(0, kAll * kMiB);
  ASSERT_TRUE((*balanced)->transfer(discard));
  EXPECT_EQ((*balanced)->chunks_of(0) + (*balanced)->chunks_of(1), 0u);
}

INSTANTIATE_TEST_SUITE_P(Every, DiskFull,
                         ::testing::Values(Full{Filesystem::kTmpfs, IoEngineKind::kUring},
                                           Full{Filesystem::kTmpfs, IoEngineKind::kThreads},
                                           Full{Filesystem::kExt4, IoEngineKind::kUring},
                                           Full{Filesystem::kExt4, IoEngineKind::kAio},
                                           Full{Filesystem::kExt4, IoEngineKind::kThreads}),
                         [](const auto& tested) {
                           return std::string(tested.param.filesystem == Filesystem::kTmpfs ? "tmpfs_"
                                                                                            : "ext4_") +
                                  std::string(engine_name(tested.param.engine));
                         });

}  // namespace
}  // namespace spw::store
